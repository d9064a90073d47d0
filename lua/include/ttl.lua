-- How long a dedupe key lives beyond its job's run_after, in ms: 7 days, as the producers give it.
local KEY_TTL = 604800000
