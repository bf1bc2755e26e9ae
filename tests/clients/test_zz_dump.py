import json, pytest
from tests.clients.opencode import OpenCode
from tests.clients.qwen_code import QwenCode
from tests.clients.task import *
from tests.real.conftest import say
@pytest.mark.parametrize("client", [OpenCode, QwenCode])
def test_dump(client, agent, scratch, wire):
    notes = scratch.work/"notes.txt"; w=secret_in(notes)
    teach(agent, call(client.READ, **{client.PATH: str(notes)}), ANSWER, call(client.READ, **{client.PATH: str(notes)}), ANSWER, "!say bye")
    s = client(wire.url, agent.name, scratch, say)
    out = s.prompt("Which word stands in notes.txt?")
    print("OUT", out)
    out = s.prompt("And now?", goes_on=True)
    print("OUT", out)
    for c in wire.proxy.calls():
        b = c.body or {}
        print("CALL", round(c.started%1000,2), round(c.seconds or -1,2), c.method, c.path, c.status, c.outcome, c.headers.get("user-agent") or c.headers.get("User-Agent"), {k:v for k,v in b.items() if k not in("messages","tools")}, [t["function"]["name"] for t in b.get("tools",[])])
        for m in b.get("messages",[]): print("      ", m["role"], json.dumps(m.get("content"))[:160], m.get("tool_calls") and [ (t["function"]["name"]) for t in m["tool_calls"]], m.get("tool_call_id"))
    print("AGENT")
    for l in agent.story(): print("   ", l[:300])
    st = agent.state()
    for b in st["memory"]["blocks"]: print("  BLOCK", b["label"], len(b["value"]), b.get("limit"), b["value"][:80])
    print("  TOOLS", [t["name"] for t in st["tools"]])
    for r in agent.world.model.requests(): print("MODEL", r.number, r.status, [m["role"] for m in r.messages][-6:], len(r.raw), (r.reply or {}).get("choices",[{}])[0].get("message"))
