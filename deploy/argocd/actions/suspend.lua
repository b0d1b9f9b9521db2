-- Stops all writes of the object, until it is resumed.

obj.spec.suspend = true
return obj
