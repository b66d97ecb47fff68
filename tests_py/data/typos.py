"""What type checkers must find: each line with `# wrong`, and no other."""

import zinc_rt
from zinc_rt import Engine, TenantQuota, Tokenizer

Engine("m.gguf", max_slot=4)  # wrong
Engine("m.gguf", tier=3)  # wrong
Engine("m.gguf", kv_dtype="f61")  # wrong
engine = Engine("m.gguf", max_slots=4, kv_dtype="f32", on_progress=lambda done, total: None)
engine.add_model("n.gguf", "n", thread=3)  # wrong
engine.add_model("n.gguf", "n", threads=3)
engine.generate("a", max_token=3)  # wrong
engine.generate(["a", "b"], temprature=0.5)  # wrong
engine.generate(3)  # wrong
print(engine.generate([[1, 2], [3]], temperature=0.5)[0].txt)  # wrong
engine.chat([{"role": "user", "content": "a"}], top_p="0.5")  # wrong
engine.chat("hello")  # wrong
engine.conversation(sytem="a")  # wrong
talk = engine.conversation(system="a")
talk.say("a", max_tokns=3)  # wrong
for event in talk.stream("a", max_tokens=3):
    print(event.text, event.token)  # wrong
engine.tenant("a", quota=TenantQuota(max_slots=3))  # wrong
engine.tenant("a", TenantQuota(qos_class="urgent"))  # wrong
tenant = engine.tenant("a", TenantQuota(qos_class="batch"))
tenant.quota.wieght = 2.0  # wrong
tenant.quota.weight = 2.0
tenant.session(sistem="a")  # wrong
session = tenant.session(system="a")
session.generate("a", logits_hash=True)  # wrong
session.generate("a", qos="interactve")  # wrong
completion = session.generate("a", qos="batch")
print(completion.usage.prompt_token, completion.timings.queue_ms)  # wrong
session.stream("a", stop_tokens=[1])  # wrong
session.stream("a").finsh()  # wrong
session.submit("a", on_evnt=print)  # wrong
session.submit("a", on_event=print, seed="7")  # wrong
engine.tokenize("a", special=True)  # wrong
engine.detokenize("a")  # wrong
engine.logits([1, 2], which="lst")  # wrong
engine.hidden([1, 2], layer="1")  # wrong
engine.trace("t.json", records=3)  # wrong
Tokenizer("m.gguf").encode("a", add_specials=True)  # wrong
print(tenant.ledger().tokens_genrated, tenant.ledger().tokens_generated)  # wrong
zinc_rt.validate("m.gguf", "a", tier=("t_cpu", "t_cpu"))  # wrong
zinc_rt.AsyncClient("http://localhost", apikey="a")  # wrong
client = zinc_rt.AsyncClient("http://localhost", api_key="a")
client.stream_chat([{"role": "user", "content": "a"}], max_token=3)  # wrong
client.stream_generate("a", temperature="hot")  # wrong
client.stream_generate([1, 2], temperature=0.5, model="m")
session.save("prefix.bin", pront="a")  # wrong
session.load("prefix.bin", salt="a")  # wrong
session.generate("a", logits_processor=3)  # wrong
zinc_rt.errors.InvalidArgumnt("a")  # wrong
