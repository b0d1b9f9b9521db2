-- Lists the actions of an object. A VaultConnection can't be suspended.

local isSuspended = obj.spec.suspend == true
local actions = {
  ["sync-now"] = { disabled = isSuspended, displayName = "Sync now", iconClass = "fa fa-fw fa-sync" },
}
if obj.kind ~= "VaultConnection" then
  actions["suspend"] = { disabled = isSuspended, displayName = "Suspend", iconClass = "fa fa-fw fa-pause" }
  actions["resume"] = { disabled = not isSuspended, displayName = "Resume", iconClass = "fa fa-fw fa-play" }
end
return actions
