-- Judges a SecretBinding, SecretGrant, BindingComposition or VaultConnection for Argo CD.

local function health(status, message)
  return { status = status, message = message }
end

if obj.metadata.deletionTimestamp ~= nil then
  return health("Progressing", "it is being deleted")
end
-- A grant has no status. Bindings report whether they may read.
if obj.kind == "SecretGrant" then
  return health("Healthy", "")
end

local status = obj.status or {}
if status.observedGeneration == nil or status.observedGeneration < obj.metadata.generation then
  return health("Progressing", "Inlay has not processed the last change")
end

local is = {}
for _, condition in ipairs(status.conditions or {}) do
  is[condition.type] = condition
end
local function says(condition)
  return condition.reason .. ": " .. condition.message
end

if is.Stalled ~= nil then
  return health("Degraded", says(is.Stalled))
end
if is.Reconciling ~= nil then
  return health("Progressing", says(is.Reconciling))
end
for _, condition in pairs({ is.Ready, is.RolledOut }) do
  if condition.reason == "Suspended" then
    return health("Suspended", condition.message)
  end
end
if is.Ready ~= nil and is.Ready.status == "True" then
  return health("Healthy", is.Ready.message)
end
return health("Progressing", "Inlay has not reported Ready")
