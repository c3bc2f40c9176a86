-- Sorting, strings, tables and calls: what the benchmarks have lua do. The same work in every
-- run: nothing depends on time or addresses.
local size = tonumber(arg and arg[1]) or 1

local seed = 42
local function random(limit)
  seed = (seed * 1103515245 + 12345) % 2147483648
  return seed % limit
end

local function fib(n)
  if n < 2 then return n end
  return fib(n - 1) + fib(n - 2)
end

local function sort(n)
  local numbers = {}
  for i = 1, n do numbers[i] = random(1000000) end
  table.sort(numbers)
  table.sort(numbers, function(a, b) return a > b end)
  return numbers[n // 2]
end

local function strings(n)
  local parts, hits = {}, 0
  for i = 1, n do
    parts[#parts + 1] = string.format("%d:%s", random(1000), string.rep("ab", i % 7))
    if i % 100 == 0 then
      local joined = table.concat(parts, ",")
      hits = hits + select(2, joined:gsub("%d+:abab", "x"))
      parts = {}
    end
  end
  return hits
end

local total = 0
for _ = 1, size do
  total = total + fib(29) + sort(120000) + strings(60000)
end
print("total=" .. total)
print(string.format("cpu %.0f", os.clock() * 1e9)) -- nanoseconds
