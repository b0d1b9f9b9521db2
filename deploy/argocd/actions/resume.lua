-- Continues with all changes since the object was suspended.

obj.spec.suspend = false
return obj
