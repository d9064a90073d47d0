"""Wrong variants of the product: mistakes that somebody could make, each with the scenario that catches it.

Without a fault nobody would notice them: a mutant passes the smoke (scenarios/test_smoke.py). Its
scenario fails, and says by which invariant of the list in checker.py.
"""

import msgspec


class Edit(msgspec.Struct, frozen=True):
    """One change of a mutant; the old text occurs once in its file."""

    path: str
    old: str
    new: str


class Mutant(msgspec.Struct, frozen=True):
    """One mistake."""

    name: str
    wrong: str
    edits: tuple[Edit, ...]
    scenario: str
    """Within tests/faults/scenarios/."""
    invariant: str
    finding: str
    """What the scenario says of the invariant when it fails."""


FENCES = (
    Mutant(
        "failure-by-anyone",
        "a failure is written by a plain XACK, which asks for no owner",
        (
            Edit(
                "lua/include/postpone.lua",
                "if not held(stream, id, ARGV[2], ARGV[i + 1]) then",
                "if redis.call('XACK', stream, 'workers', id) == 0 then",
            ),
            Edit(
                "lua/bury.lua",
                "if not held(stream, id, consumer, ARGV[i + 1]) then",
                "if redis.call('XACK', stream, 'workers', id) == 0 then",
            ),
        ),
        "test_freezes.py::test_F11_nor_while_the_other_still_runs_the_job",
        "I5",
        "a stale retry counted",
    ),
    Mutant(
        "renewal-by-anyone",
        "a lease is renewed without a look at who holds it",
        (
            Edit(
                "lua/renew.lua",
                "if held(stream, id, consumer, ARGV[i + 1]) then",
                "if #redis.call('XRANGE', stream, id, id) > 0 then",
            ),
        ),
        "test_freezes.py::test_F11_a_zombies_handler_is_told_that_its_run_is_lost[plain]",
        "I5",
        "a stale renew counted",
    ),
    Mutant(
        "fence-by-name",
        "the fence is the owner's name alone, without the delivery count",
        (Edit("lua/include/fence.lua", " and row[4] == tonumber(deliveries)", ""),),
        "test_network.py::test_a_late_copy_of_a_release_frees_nothing",
        "I5",
        "a late release counted",
    ),
    Mutant(
        "release-lowers-the-count",
        "a release lowers the delivery count, so that it costs nothing",
        (Edit("lua/release.lua", "'IDLE', lease, 'JUSTID'", "'IDLE', lease, 'RETRYCOUNT', ARGV[i + 1] - 1, 'JUSTID'"),),
        "test_network.py::test_a_late_copy_of_a_release_frees_nothing",
        "I5",
        "a late release counted",
    ),
)

LOSSES = (
    Mutant(
        "key-before-xadd",
        "the dedupe key is taken in a call of its own, before the job that holds it is there",
        (
            Edit(
                "lua/enqueue.lua",
                "      local given = add(id, kind, body, meta)\n",
                "      if keyed then redis.call('SET', name, id or '0-1', 'PX', ttl) end\n"
                "      local given = add(id, kind, body, meta)\n",
            ),
        ),
        "test_producers.py::test_F48_an_enqueue_that_ends_half_way_holds_no_dedupe_key",
        "I12",
        "a duplicate of a job that nobody knows",
    ),
    Mutant(
        "group-at-the-end",
        "the group begins at $: what waits already is never seen",
        (Edit("lua/include/group.lua", "'workers', '0', 'MKSTREAM'", "'workers', '$', 'MKSTREAM'"),),
        "test_producers.py::test_F1_a_producer_killed_after_the_reply_leaves_the_job_once",
        "I16",
        "orphaned: nobody will ever be given it",
    ),
    Mutant(
        "xack-before-zadd",
        "a retry takes the entry out before its job is in the set",
        (
            Edit(
                "lua/include/postpone.lua",
                "    redis.call('HSET', bodies, job,",
                "    leave(stream, id, moved, job, suspects)\n    redis.call('HSET', bodies, job,",
            ),
        ),
        "test_upkeep.py::test_F48_a_move_that_ends_half_way_loses_nothing[retry-zadd]",
        "I1",
        "lost: accepted, and neither ended nor there",
    ),
    Mutant(
        "zrem-before-xadd",
        "a promotion takes the job out of the set before it is on the stream",
        (
            Edit(
                "lua/include/due.lua",
                "      local entry = redis.call('XADD'",
                "      redis.call('ZREM', zset, job)\n"
                "      redis.call('HDEL', bodies, job)\n"
                "      local entry = redis.call('XADD'",
            ),
        ),
        "test_upkeep.py::test_F48_a_move_that_ends_half_way_loses_nothing[promote-xadd]",
        "I1",
        "lost: accepted, and neither ended nor there",
    ),
    Mutant(
        "delconsumer-on-exit",
        "a worker that leaves is deleted with all that it still holds",
        (
            Edit(
                "lua/retire.lua", "if #redis.call('XPENDING', stream, 'workers', '-', '+', 1, consumer) == 0 then", "do"
            ),
        ),
        "test_stops.py::test_F44_a_second_signal_in_a_commit_leaves_no_half_of_it",
        "I16",
        "orphaned: nobody will ever be given it",
    ),
    Mutant(
        "maxlen",
        "the stream is bounded: XADD drops the oldest jobs",
        (Edit("lua/enqueue.lua", "'XADD', stream, id or '*',", "'XADD', stream, 'MAXLEN', 1000, id or '*',"),),
        "test_producers.py::test_F3_a_connection_cut_in_mid_batch_costs_and_doubles_nothing[0.6]",
        "I1",
        "lost: accepted, and neither ended nor there",
    ),
    Mutant(
        "sweep-from-the-start",
        "each sweep looks at the first claims again, and at no others",
        (
            Edit("streamjobs/worker/fetch.py", "queue.cursor = swept.cursor", "queue.cursor = leases.SWEEP_BEGIN"),
            Edit(
                "streamjobs/worker/fetch.py",
                "if swept.cursor == leases.SWEEP_BEGIN:",
                "if queue.cursor == leases.SWEEP_BEGIN:",
            ),
        ),
        "test_upkeep.py::test_F47_dead_claims_behind_hundreds_of_live_ones_are_found_within_two_sweeps",
        "I15",
        "dead claims are found within two sweeps",
    ),
    Mutant(
        "nogroup-not-handled",
        "a worker whose group is gone goes on reading from it",
        (
            Edit("streamjobs/worker/fetch.py", 'if error.word not in ("NOGROUP", "UNBLOCKED"):', "if error:"),
            Edit("streamjobs/worker/insist.py", 'error.word == "NOGROUP"', 'error.word == ""'),
        ),
        "test_server.py::test_F36_what_was_deleted_is_made_again_and_work_goes_on[group]",
        "I16",
        "work goes on after a fault",
    ),
)

UNTRUTHS = (
    Mutant(
        "ack-in-finally",
        "a success is written in `finally`, whatever left the handler",
        (
            Edit(
                "streamjobs/worker/run.py",
                """        except BaseException as error:
            outcome = outcomes.of_error(execution, error, self._rules)
            execution.traceback = outcomes""",
                """        except Exception as error:
            outcome = outcomes.of_error(execution, error, self._rules)
            execution.traceback = outcomes""",
            ),
            Edit(
                "streamjobs/worker/run.py",
                "            self._ended(execution, Returned(value))\n",
                "            self._ended(execution, Returned(value))\n"
                "        finally:\n"
                "            if execution.task:\n"
                "                self._ended(execution, Returned(None))\n",
            ),
        ),
        "test_freezes.py::test_F15_a_handler_over_its_time_is_cancelled_and_charged",
        "I9",
        "complete of a handler that ended as cancelled",
    ),
    Mutant(
        "cancellation-is-success",
        "a handler that the end of its worker cancels has succeeded",
        (
            Edit(
                "streamjobs/worker/outcomes.py", "Raised, Snoozed, TimedOut\n", "Raised, Returned, Snoozed, TimedOut\n"
            ),
            Edit("streamjobs/worker/outcomes.py", "else Interrupted()", "else Returned(None)"),
        ),
        "test_stops.py::test_F44_a_second_signal_ends_it_at_once_and_gives_back_all[15-15-143]",
        "I9",
        "complete of a handler that ended as cancelled",
    ),
    Mutant(
        "driver-retries",
        "a request whose reply was lost is sent again behind our back",
        (
            Edit(
                "streamjobs/client/sync.py",
                "            replies = self._round(line, packed)\n",
                "            replies = self._round(line, packed)\n"
                "            if isinstance(replies[0], faults.Lost):\n"
                "                try:\n"
                "                    line = self._take()\n"
                "                except faults.FAILURES as error:\n"
                "                    return [faults.unconnected(error, self._where) for _ in requests]\n"
                "                replies = self._round(line, packed)\n",
            ),
        ),
        "test_producers.py::test_F5_what_may_have_been_done_is_never_told_as_a_failure",
        "I3",
        "there, though its enqueue failed for certain",
    ),
    Mutant(
        "stale-batch-taken",
        "the copy of an earlier batch is taken for a new one",
        (
            Edit(
                "lua/include/batch.lua",
                "if tonumber(last_number) > tonumber(number) then return 'STALEBATCH' end",
                "if last_number ~= number then return nil end",
            ),
        ),
        "test_producers.py::test_F2_a_late_copy_of_a_batch_does_nothing",
        "I4",
        "one call, two jobs",
    ),
    Mutant(
        "client-clock",
        "what is due is decided by the worker's clock",
        (
            Edit(
                "streamjobs/worker/promote.py",
                "room=self._room()\n",
                "room=self._room(), clock=str(__import__('time').time_ns() // 1_000_000)\n",
            ),
        ),
        "test_clock.py::test_F31_a_worker_whose_clock_is_wrong_starts_jobs_when_they_are_due[forward]",
        "I8",
        "started before",
    ),
    Mutant(
        "suspects-not-counted",
        "a start that is marked is not counted, so crashes never add up",
        (
            Edit(
                "lua/include/suspects.lua", "keep_suspect(suspects, id, marks + 1,", "keep_suspect(suspects, id, marks,"
            ),
        ),
        "test_kills.py::test_F16_a_poison_job_is_dead_after_three_crashes_and_blames_no_sibling[exit]",
        "I7",
        "its process died in",
    ),
    Mutant(
        "siblings-blamed",
        "a suspect never runs alone: siblings are blamed for each crash of a poison job",
        (Edit("streamjobs/worker/start.py", "ALONE_FROM = 2", "ALONE_FROM = 1_000"),),
        "test_kills.py::test_F16_siblings_that_a_poison_job_takes_along_each_time_are_not_blamed",
        "I7",
        "siblings are dead for the crashes of a poison job",
    ),
)

RULES = (
    Mutant(
        "key-without-ttl",
        "a dedupe key has no TTL: only the end of its job can free it",
        (
            Edit("lua/include/key.lua", "SET', name, id, 'NX', 'PX', ttl, 'GET')", "SET', name, id, 'NX', 'GET')"),
            Edit("lua/include/key.lua", "SET', name, id, 'NX', 'PX', ttl)", "SET', name, id, 'NX')"),
            Edit("lua/enqueue.lua", "SET', name, given, 'PX', ttl)", "SET', name, given)"),
        ),
        "test_dedupe.py::test_keys_of_every_mode_hold_while_workers_are_killed_and_jobs_fail",
        "I12",
        "a duplicate of a job that had its window behind it before",
    ),
    Mutant(
        "key-freed-too-early",
        "a dedupe key is given back when its job fails, though it is to be retried",
        (
            Edit(
                "lua/include/postpone.lua",
                "redis.call('PEXPIRE', key, string.format('%d', delay + KEY_TTL))",
                "redis.call('DEL', key)",
            ),
        ),
        "test_dedupe.py::test_keys_of_every_mode_hold_while_workers_are_killed_and_jobs_fail",
        "I12",
        "got the key",
    ),
    Mutant(
        "slot-counter",
        "slots are counted, and are no claim's: only who took one gives it back",
        (
            Edit("lua/include/lanes.lua", "'(' .. slot .. '0', 'LIMIT'", "'(' .. slot .. '/1', 'LIMIT'"),
            Edit(
                "lua/include/line.lua",
                "  if pending(lanes.stream, entry) then\n    redis.call('ZREM', lanes.gone",
                "  if entry then\n    redis.call('ZREM', lanes.gone",
            ),
        ),
        "test_limits.py::test_I5_a_killed_holders_place_is_free_after_its_lease",
        "I15",
        "what a dead process ran is started again, in its old place",
    ),
    Mutant(
        "client-clock-in-cron",
        "the worker's clock says which slots of a cron have come",
        (
            Edit(
                "streamjobs/worker/cron.py",
                "else self._station.clock.now_ms()\n",
                "else __import__('time').time_ns() // 1_000_000\n",
            ),
            Edit(
                "streamjobs/worker/cron.py",
                'return str(self._clock()) if self._clock else ""',
                "return str(self._now_ms())",
            ),
        ),
        "test_clock.py::test_F31_a_worker_whose_clock_is_wrong_runs_the_slots_of_a_cron_in_time[forward]",
        "I25",
        "a slot of beat came",
    ),
)

MUTANTS = {mutant.name: mutant for mutant in (*FENCES, *LOSSES, *UNTRUTHS, *RULES)}
