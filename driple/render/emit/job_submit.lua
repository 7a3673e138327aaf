-- Slurm submit filter: fills empty fields of a job from a file of Driple's answers.
--
--   driple predict JOB --setting 8xH100 --set training_steps=N --emit slurm-answer >> answers.tsv
--   slurm.conf: JobSubmitPlugins=lua; this file as job_submit.lua beside slurm.conf
--
-- A line of the file has the columns name, nodes, gpus_per_node, time_minutes, time_min_minutes and
-- mem_mb, separated by tabs; "-" is unknown, a line with "#" is a comment. The last line of a name
-- counts. A job is matched by its --job-name; what its user asked for is never changed, and a job
-- that asks for other numbers of nodes or GPUs than the answer is left as it is. The file is read
-- anew for each job; without it, no job is changed.

DRIPLE_ANSWERS = DRIPLE_ANSWERS or "/etc/slurm/driple_answers.tsv"

local function is_empty(value)
  return value == nil or value == "" or value == 0
    or value == slurm.NO_VAL or value == slurm.NO_VAL16 or value == slurm.NO_VAL64
end

local function cells_of(line)
  local cells = {}
  for cell in string.gmatch(line, "[^\t]+") do
    cells[#cells + 1] = cell
  end
  return cells
end

local function answer_of(name)
  local file = io.open(DRIPLE_ANSWERS, "r")
  if file == nil then
    return nil
  end
  local answer = nil
  for line in file:lines() do
    local cells = cells_of(line)
    if cells[1] == name and #cells >= 6 then
      answer = {
        nodes = tonumber(cells[2]),
        gpus = tonumber(cells[3]),
        time = tonumber(cells[4]),
        time_min = tonumber(cells[5]),
        mem_mb = tonumber(cells[6]),
      }
    end
  end
  file:close()
  return answer
end

-- GPUs of each node that a job asks for: "gres/gpu:h100:8", "gres:gpu:8"; nil if it asks for none.
local function gpus_asked(job_desc)
  local asked = job_desc.tres_per_node
  if is_empty(asked) or not string.find(asked, "gpu") then
    return nil
  end
  return tonumber(string.match(asked, "gpu[^,]*[:=](%d+)") or "1")
end

-- How GPUs of the whole job, of a task or of a socket were asked for; those are not compared.
local function asks_otherwise(job_desc)
  return not (is_empty(job_desc.tres_per_job) and is_empty(job_desc.tres_per_task)
    and is_empty(job_desc.tres_per_socket))
end

local function same_machines(job_desc, answer)
  local nodes, gpus = job_desc.min_nodes, gpus_asked(job_desc)
  return (is_empty(nodes) or nodes == answer.nodes) and (gpus == nil or gpus == answer.gpus)
    and not asks_otherwise(job_desc)
end

function slurm_job_submit(job_desc, part_list, submit_uid)
  if is_empty(job_desc.name) then
    return slurm.SUCCESS
  end
  local answer = answer_of(job_desc.name)
  if answer == nil or not same_machines(job_desc, answer) then
    return slurm.SUCCESS
  end
  if is_empty(job_desc.min_nodes) and answer.nodes then
    job_desc.min_nodes = answer.nodes
    job_desc.max_nodes = answer.nodes
  end
  if is_empty(job_desc.tres_per_node) and answer.gpus then
    job_desc.tres_per_node = "gres/gpu:" .. string.format("%d", answer.gpus)
  end
  -- A lowest limit belongs to the limit beside it: a user's own limit gets none of ours.
  if is_empty(job_desc.time_limit) and answer.time then
    job_desc.time_limit = answer.time
    if is_empty(job_desc.time_min) and answer.time_min then
      job_desc.time_min = answer.time_min
    end
  end
  if is_empty(job_desc.min_mem_per_node) and is_empty(job_desc.min_mem_per_cpu)
    and is_empty(job_desc.mem_per_tres) and answer.mem_mb then
    job_desc.min_mem_per_node = answer.mem_mb
  end
  return slurm.SUCCESS
end

function slurm_job_modify(job_desc, job_rec, part_list, modify_uid)
  return slurm.SUCCESS
end
