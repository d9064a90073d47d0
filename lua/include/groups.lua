-- each_group(at, width, word, count, move): walk the groups from ARGV[at] on. A group is
--   kind, items, sums, (field, value) * sums, then `width` words per item.
-- move(i) settles the item whose words start at ARGV[i] and answers nil, or the word for "not done".
-- Counts `word` per kind, and the sums, for what was changed only, and the rest as `lost`.
-- Returns the pairs index, word of the items that were not done (index from 0 over all groups).
local function each_group(at, width, word, count, move)
  local words, index = {}, 0
  while ARGV[at] do
    local kind, items, sums = ARGV[at], tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])
    local first = at + 3
    at = first + 2 * sums
    local done = 0
    for _ = 1, items do
      local answer = move(at)
      if answer then
        words[#words + 1] = index
        words[#words + 1] = answer
      else
        done = done + 1
      end
      index = index + 1
      at = at + width
    end
    if done > 0 then
      count(word, kind, done)
      add_sums(count, kind, first, first + 2 * sums - 1, done / items)
    end
  end
  if #words > 0 then count('lost', '', #words / 2) end
  return words
end
