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
-- What the object waits for: the first problem of a binding with the reason, or the condition that has it.
local function says(progress)
  local problems = obj.kind == "SecretBinding" and status.problems or {}
  for _, problem in ipairs(problems) do
    if problem.reason == progress.reason then
      local text = progress.reason .. ": "
      local target = problem.target
      if target ~= nil then
        local namespace = target.namespace and target.namespace .. "/" or ""
        text = text .. target.kind .. " " .. namespace .. (target.name or "objects") .. ": "
      end
      text = text .. (problem.path and problem.path .. ": " or "") .. problem.message
      text = text .. (problem.fix and "; " .. problem.fix or "")
      return text .. (problem.command and " with: " .. problem.command or "")
    end
  end
  for _, type in ipairs({ "Accepted", "Ready", "RolledOut" }) do
    if is[type] ~= nil and is[type].reason == progress.reason then
      return progress.reason .. ": " .. is[type].message
    end
  end
  return progress.reason .. ": " .. progress.message
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
