-- Lists the actions of an object. A VaultConnection can't be suspended, and a BindingComposition reads nothing that could be read again.

local isSuspended = obj.spec.suspend == true
local actions = {}
if obj.kind ~= "BindingComposition" then
  actions["sync-now"] = { disabled = isSuspended, displayName = "Sync now", iconClass = "fa fa-fw fa-sync" }
end
if obj.kind ~= "VaultConnection" then
  actions["suspend"] = { disabled = isSuspended, displayName = "Suspend", iconClass = "fa fa-fw fa-pause" }
  actions["resume"] = { disabled = not isSuspended, displayName = "Resume", iconClass = "fa fa-fw fa-play" }
end
return actions
