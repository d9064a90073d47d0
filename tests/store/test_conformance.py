"""docs/conformance.json is true: of the servers, and of this library. Others build on it."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from streamjobs.core.codec import DecodeFailed, decode_meta, encode_meta, split_envelope
from streamjobs.core.errors import InvalidOption
from streamjobs.core.names import split_job_id
from streamjobs.protocol import intake, scripts
from streamjobs.protocol.calls import Call, Command
from streamjobs.protocol.intake import Batch, BatchRefused
from streamjobs.protocol.keys import QueueKeys, describe, queues
from tests.store import life
from tests.store.support import Store, job

ROOT = Path(__file__).parents[2]
VECTORS: dict[str, Any] = json.loads((ROOT / "docs" / "conformance.json").read_bytes())
NAMESPACE = "conf:"


def texts(reply: Any) -> Any:
    """Return a reply as JSON has it."""
    if isinstance(reply, list):
        return [texts(item) for item in reply]
    return reply.decode() if isinstance(reply, bytes) else reply


def same(expected: Any, reply: Any) -> bool:
    """Compare a reply with a vector, in which `{"match": ...}` stands for what differs from run to run."""
    if isinstance(expected, dict):
        return re.fullmatch(expected["match"], str(reply)) is not None
    if isinstance(expected, list):
        return isinstance(reply, list) and len(expected) == len(reply) and all(map(same, expected, reply))
    return bool(expected == reply)


def test_a_queues_life_is_as_the_vectors_say(bare: Store, namespace: str) -> None:
    def own(words: list[str]) -> list[str]:
        return [word.replace(NAMESPACE, f"{namespace}:") for word in words]

    for step in VECTORS["life"]:
        if "script" in step:
            request = Call(step["script"], own(step["keys"]), own(step["args"]), texts)
            reply = bare.run(request)
        else:
            reply = bare.run(Command(own(step["command"]), texts))
        expected = json.loads(json.dumps(step["reply"]).replace(NAMESPACE, f"{namespace}:"))
        assert same(expected, reply), f"{step['shows']}: {reply}"
    assert bare.left() == set()


def test_the_library_says_what_the_vectors_say() -> None:
    def text(word: object) -> str:
        return word.decode() if isinstance(word, bytes) else str(word)

    own = []
    for shows, request in life.steps():
        if isinstance(request, Call):
            step = {"script": request.script, "keys": [*request.keys], "args": [*map(text, request.args)]}
        else:
            step = {"command": [*map(text, request.words)]}
        own.append({"shows": shows, **step})

    assert own == [{k: v for k, v in step.items() if k != "reply"} for step in VECTORS["life"]]


def test_the_vectors_call_every_script_and_the_readme_names_it() -> None:
    readme = (ROOT / "lua" / "README.md").read_text("utf-8")

    assert {step["script"] for step in VECTORS["life"] if "script" in step} == set(scripts.names())
    for name in scripts.names():
        assert f"| `{name}` |" in readme


@pytest.mark.parametrize("vector", VECTORS["keys"], ids=lambda vector: vector["keys"]["stream"])
def test_key_names(vector: dict[str, Any]) -> None:
    keys = QueueKeys(vector["namespace"], vector["queue"], vector["partition"])
    own = {
        "dedupe (key user:7)": keys.dedupe("user:7"),
        "once (key email:42)": keys.once("email:42"),
        "producer (id 3f)": keys.producer("3f"),
        "result (job d1-0)": keys.result("d1-0"),
        "promise (of web:1-0, entry 2-0, at 3)": keys.promise("web:1-0", "2-0", 3),
        "became (job d1-0)": keys.became("d1-0"),
        "metrics (minute 30000000)": keys.minute(30_000_000),
        "metrics (times of minute 30000000)": keys.times(30_000_000),
        "metrics (times of hour 500000)": keys.times_of_hour(500_000),
        "dead:ids": keys.dead_ids,
        "cron:holds": keys.cron_holds,
        "cron:code": keys.cron_code,
    }

    for name, key in vector["keys"].items():
        assert (own.get(name) or getattr(keys, name)) == key
        assert key.startswith(keys.base)
        assert name == "done" or describe(key) == name.partition(" ")[0]
    assert keys.job_id("1764412345678-0") == vector["job_id of 1764412345678-0"]


def test_name_of_the_set_of_queues() -> None:
    [vector] = VECTORS["queues"]

    assert queues(vector["namespace"]) == vector["key"]


@pytest.mark.parametrize("vector", VECTORS["job_ids"], ids=lambda vector: repr(vector["id"]))
def test_job_ids(vector: dict[str, Any]) -> None:
    if vector.get("error"):
        with pytest.raises(InvalidOption):
            split_job_id(vector["id"])
    else:
        assert split_job_id(vector["id"]) == (vector["queue"], vector["partition"], vector["local"])


@pytest.mark.parametrize("vector", VECTORS["envelopes"])
def test_envelopes(store: Store, vector: dict[str, str]) -> None:
    kind, body, meta = (vector[part].encode() for part in ("kind", "body", "meta"))
    assert split_envelope(vector["envelope"].encode()) == (kind, body, meta)
    store.command("HSET", store.keys.bodies, "d1-0", vector["envelope"])
    store.command("ZADD", store.keys.scheduled, 1, "d1-0")

    store.promote()

    [claim] = store.claim()
    assert (claim.kind, claim.body, claim.meta) == (kind, body, meta)


@pytest.mark.parametrize("vector", VECTORS["metas"], ids=lambda vector: vector["shows"])
def test_metas_are_written_as_they_are_read(vector: dict[str, str]) -> None:
    raw = vector["meta"].encode()

    assert encode_meta(decode_meta(raw)) == raw


@pytest.mark.parametrize("vector", VECTORS["refused_metas"], ids=lambda vector: vector["meta"])
def test_metas_that_are_none_are_refused(vector: dict[str, str]) -> None:
    with pytest.raises(DecodeFailed):
        decode_meta(vector["meta"].encode())


@pytest.mark.parametrize("vector", VECTORS["enqueue_replies"], ids=lambda vector: vector["reply"])
def test_replies_of_enqueue_and_schedule(vector: dict[str, Any]) -> None:
    jobs = [job(n) for n in range(vector["jobs"])]
    build = intake.enqueue if vector["script"] == "enqueue" else intake.schedule
    call = build(QueueKeys("sj", "mail"), jobs, Batch("p", 1, "aa"))

    if vector.get("refused"):
        with pytest.raises(BatchRefused, match=vector["reply"]):
            call.decode(vector["reply"].encode())
    else:
        accepted = call.decode(vector["reply"].encode())
        assert accepted.ids(len(jobs)) == vector["ids"]
        assert {str(index): most for index, most in accepted.full.items()} == vector.get("full", {})
