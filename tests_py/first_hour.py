"""What people do first with a new program and package, and what they must see: the table of test_first_hour.py.

$M is a tiny model with a chat template, $PLAIN one of tests_data without, $OTHER of a family that is refused,
$RANDOM no model at all.
"""

from typing import NamedTuple


class Shell(NamedTuple):
    """A command line; words that stdout and stderr must have."""

    line: str
    code: int = 0
    out: tuple = ()
    err: tuple = ()


class Lines(NamedTuple):
    """Lines of Python. The repr of the last one's value has the words, or the error of this name has them."""

    source: str
    words: tuple = ()
    error: str | None = None


class HttpCase(NamedTuple):
    """A request to a server. The body of its answer has the words."""

    method: str
    path: str
    body: object = None
    status: int = 200
    words: tuple = ()
    headers: dict = {}
    key: str | None = None


SHELL = [
    Shell("zinc-rt --help", out=("Use a model:", "zinc-rt chat model.gguf", "Exit codes: 0 done")),
    Shell("zinc-rt -h | head -n 1", out=("ZINC_RT",)),
    Shell("zinc-rt --version", out=("zinc-rt 0.",)),
    Shell("zinc-rt", 2, err=("subcommand is required", "--help")),
    Shell("zinc-rt caht $M", 2, err=('no command "caht"; did you mean chat?',)),
    Shell("zinc-rt run $M -p hi --temprature 1", 2, err=("no option --temprature; did you mean --temperature?",)),
    Shell("zinc-rt run $M hi", 2, err=('zinc-rt run: "hi" is not expected', "-p TEXT", "--chat TEXT")),
    Shell("zinc-rt models --nonsense", 2, err=("no option --nonsense", "zinc-rt models --help")),
    Shell("zinc-rt run -p hi", 2, err=("model is required",)),
    Shell("zinc-rt run --help", out=("Example: zinc-rt run", "--max-tokens", "Sampling:")),
    # Text.
    Shell("zinc-rt run -m $PLAIN -c 256 -t 1 -p Hello -n 4", err=("5 prompt tokens", "4 generated", "length")),
    Shell("zinc-rt run $PLAIN -p Hello -n 4 --ignore-eos 2>&1", out=("\n[5 prompt tokens",)),
    Shell("echo Once upon > a.txt; zinc-rt run $PLAIN -f a.txt -n 2", err=("10 prompt tokens",)),
    Shell("echo Hello | zinc-rt run $PLAIN -f - -n 2", err=("6 prompt tokens",)),
    Shell("echo Hello | zinc-rt run $M -n 2 --ignore-eos", err=("2 generated",)),
    Shell("echo Hello | zinc-rt run $PLAIN", 3, err=("tokenizer.chat_template",)),
    Shell("zinc-rt run $M --chat Hi --system 'Be brief.' -n 2 --json", out=('"completion_tokens":2', '"text"')),
    Shell("zinc-rt run $M -p hi -n 4 --temperature 0.8 --top-k 40 --top-p 0.9 --min-p 0.05 --seed 7",
          err=("4 generated",)),
    Shell("zinc-rt run $M -p hi -n 2 --top-p 2", 3, err=("top_p is 2, 0 to 1 allowed",)),
    Shell("zinc-rt run $M -p hi --temperature hot", 2, err=("--temperature", "hot")),
    Shell("zinc-rt run $M -p hi -n -1", 2, err=("--max-tokens", "-1")),
    Shell("zinc-rt run $M -p hi -c 100000", 3, err=("max_context 100000", "512")),
    Shell("zinc-rt run $M -p ''", 3, err=("no tokens",)),
    Shell("zinc-rt run $M -p hi --tier gpu", 3, err=('unknown tier "gpu"', "t_cpu")),
    Shell("zinc-rt run none.gguf -p hi", 3, err=("none.gguf: No such file",)),
    Shell("zinc-rt run $RANDOM -p hi", 3, err=("not a GGUF file",)),
    # A conversation.
    # With a seed, since a token of the random model may be what a terminal takes for control.
    Shell("printf 'one\\ntwo\\n/exit\\n' | zinc-rt chat $M -n 2 --seed 1", out=("\n",),
          err=("/help", "temperature 0.7")),
    Shell("printf '/help\\n' | zinc-rt chat $M", err=("/undo", "/set NAME VALUE", '"""')),
    Shell("printf '/rest\\n/foo\\n' | zinc-rt chat $M", err=("did you mean /reset?", "no command /foo")),
    Shell("printf '/set\\n/set temprature 1\\n/set top_k 5\\n/set\\n' | zinc-rt chat $M",
          err=("did you mean temperature?", "top_k 5")),
    Shell("printf '/set temperature x\\n' | zinc-rt chat $M", err=("a number wanted",)),
    Shell("echo hi | zinc-rt chat $PLAIN -n 2", 3, err=("tokenizer.chat_template", "zinc-rt run")),
    # A model, looked at.
    Shell("zinc-rt info $PLAIN", out=("family", "context_length", "1024")),
    Shell("zinc-rt info $PLAIN --tensors", out=("TENSOR", "blk.0.attn_q.weight")),
    Shell("zinc-rt info $OTHER", 1, err=("lemma",)),
    Shell("zinc-rt info $OTHER --tensors", out=("blk.0.attn_q.weight",)),
    Shell("zinc-rt plan $PLAIN --max-slots 2", out=("kv_pages", "allocated", "--kv-pages")),
    Shell("zinc-rt tokenize $PLAIN Hello", out=("72  H", "111  o")),
    Shell("zinc-rt tokenize $PLAIN", 2, err=("TEXT is required",)),
    Shell("zinc-rt validate $PLAIN --prompt Hello --tiers t_cpu,t_cpu+cpu_kernels=ref", out=("\nEQUAL",)),
    Shell("zinc-rt validate $M --prompt Hello --tiers t_cpu,t_cpu+activations=f32", 1, out=("\nDIFFERENT",)),
    Shell("zinc-rt validate $PLAIN --prompt Hello --tiers t_cpu,t_cpu+kernel=ref", 2, err=("cpu_kernels, ",)),
    Shell("zinc-rt tiers", out=("t_cpu", "chosen: ")),
    Shell("zinc-rt tiers --env", out=("ZINC_RT_TIER", "ZINC_RT_MODELS")),
    Shell("ZINC_RT_API_KEY=sesame zinc-rt tiers --env | grep -c sesame", 1, out=("0",)),
    # Models by name.
    Shell("zinc-rt models", out=("No models in", "zinc-rt pull NAME")),
    Shell("zinc-rt models --catalogue", out=("smollm2:135m", "OWNER/REPO")),
    Shell("mkdir -p $ZINC_RT_MODELS; cp $PLAIN $ZINC_RT_MODELS/mine.gguf; zinc-rt models", out=("mine", "llama")),
    Shell("mkdir -p $ZINC_RT_MODELS; cp $PLAIN $ZINC_RT_MODELS/mine.gguf; zinc-rt alias best mine && "
          "zinc-rt run best -p a -n 1 && zinc-rt rm best && zinc-rt rm mine && zinc-rt models",
          out=("alias best of mine is removed", "mine is removed", "No models in"), err=("1 generated",)),
    Shell("zinc-rt alias best none", 3, err=('no model "none"',)),
    Shell("zinc-rt rm none", 3, err=('no model "none"', "`zinc-rt models`")),
    Shell("zinc-rt run smollm2:135m -p hi", 3, err=("zinc-rt pull smollm2:135m",)),
    Shell("zinc-rt pull smolm2", 3, err=("did you mean smollm2?",)),
    Shell("zinc-rt pull 'no such thing'", 3, err=("no model's name", "OWNER/REPO")),
    Shell("HF_ENDPOINT=http://127.0.0.1:1 zinc-rt pull smollm2:135m", 1, err=("network", "https_proxy")),
    Shell("zinc-rt completion bash | bash -n", 0),
    Shell("zinc-rt completion zsh", out=("#compdef zinc-rt",)),
    Shell("zinc-rt completion fish", out=("complete -c zinc-rt",)),
    Shell("zinc-rt completion tcsh", 2, err=("tcsh", "bash")),
    Shell("zinc-rt help run", out=("Usage: zinc-rt run", "--max-tokens")),
    Shell("zinc-rt help", out=("Use a model", "zinc-rt help COMMAND")),
    Shell("zinc-rt help rnu", 2, err=("did you mean run?",)),
    Shell("zinc-rt run $M -p x -n -1", 2, err=("--max-tokens: -1 is given, a whole number from 0 on wanted",)),
    Shell("zinc-rt run $M -p x --temperature warm", 2, err=("warm is given, a number wanted",)),
    # A server, before it serves.
    Shell("zinc-rt key", out=("key   zrt-", "hash  sha256:")),
    Shell("zinc-rt serve --id x", 3, err=("--id x is given without a MODEL",)),
    Shell("zinc-rt serve none.gguf --state none --port 0", 3, err=("none.gguf",)),
    Shell("zinc-rt serve $M --state none --port 99999", 2, err=("99999", "65535")),
    Shell("zinc-rt serve $M --state none --port 0 --host 0.0.0.0", 3, err=("--api-key", "--allow-anonymous")),
    Shell("zinc-rt serve $M --apikey x", 2, err=("did you mean --api-key?",)),
    Shell("zinc-rt serve --config none.toml", 2, err=("none.toml",)),
    Shell("zinc-rt serve --example-config", out=("[server]", "[[tenants]]")),
    Shell('python -c "import zinc_rt; print(zinc_rt.__version__)"', out=("0.",)),
    Shell('python -c "import zinc_rt; print(zinc_rt.Engine(\'$M\').generate(\'hi\', max_tokens=2))"',
          out=("Completion(",)),
]  # fmt: skip

INVALID, TYPE = "InvalidArgument", "InvalidType"
SAY = "engine.chat([{'role': 'user', 'content': 'hi'}], max_tokens=2)"
PYTHON = [
    Lines("zinc_rt.Engine(model)", ("<zinc_rt.Engine tiny on t_", "64 slots")),
    Lines("with zinc_rt.Engine(model) as e: text = e.generate('hi', max_tokens=2).text\ntext", ("'",)),
    Lines("zinc_rt.Engine('none.gguf')", ("none.gguf: No such file",), "NotFound"),
    Lines("zinc_rt.Engine(random)", ("not a GGUF file",), "Corrupt"),
    Lines("zinc_rt.Engine()", ("model is missing",), TYPE),
    Lines("zinc_rt.Engine(3)", ("model is int 3",), TYPE),
    Lines("zinc_rt.Engine(model, max_slot=3)", ("did you mean max_slots?",), TYPE),
    Lines("zinc_rt.Engine(model, max_slots='4')", ("max_slots is str '4'",), TYPE),
    Lines("zinc_rt.Engine(model, tier='gpu')", ('unknown tier "gpu"', "t_cpu"), INVALID),
    Lines("engine.generate('hi', max_tokens=3)", ("Completion(text=", "completion_tokens=3")),
    Lines("engine.generate(['hi', 'the'], max_tokens=2)", ("[Completion(", ", Completion(")),
    Lines("engine.generate(engine.tokenize('the thin'), max_tokens=2)", ("prompt_tokens=4",)),
    Lines("engine.generate('hi', max_token=3)", ("did you mean max_tokens?",), TYPE),
    Lines("engine.generate('hi', temperature='hot')", ("temperature is str 'hot'",), TYPE),
    Lines("engine.generate('hi', temperature=-1)", ("temperature is -1, 0 to 100 allowed",), INVALID),
    Lines("engine.generate('hi', seed=-1)", ("seed is -1, 0 to 18446744073709551615",), INVALID),
    Lines("engine.generate('')", ("no tokens",), INVALID),
    Lines("engine.generate(b'hi')", ("prompt is bytes",), TYPE),
    Lines("engine.generate('hi ' * 1000)", ("511 allowed", "context"), INVALID),
    Lines(SAY, ("Completion(", "prompt_tokens=21")),
    Lines("engine.chat('hi')", ("messages is str 'hi'",), TYPE),
    Lines("talk = engine.conversation(max_tokens=2)\ntalk.say('hi')\ntalk", ("Conversation of 1 turn",)),
    Lines("engine.tenant('alice')", ("<zinc_rt.Tenant 'alice'",)),
    Lines("engine.tenant('alice').session()", ("<zinc_rt.Session of tenant 'alice'>",)),
    Lines("zinc_rt.TenantQuota(max_slots=1)", ("did you mean max_concurrent_slots?",), TYPE),
    Lines("engine.tenant('alice').quota.max_slots = 1", ("max_slots is no field", "max_concurrent_slots"), TYPE),
    Lines("engine.model_card()._repr_html_()", ("<table>", "Model tiny")),
    Lines("zinc_rt.TenantQuota()._repr_html_()", ("<table>", "max_concurrent_slots")),
    Lines("c = engine.generate('hi', max_tokens=2)\nassert pickle.loads(pickle.dumps(c)) == c", ("None",)),
    Lines("pickle.dumps(engine)", ("cannot pickle Engine", "open it again"), "TypeError"),
    Lines("engine.generate('hi', max_tokens=2, logits_processor=lambda ids, logits: 2 * logits)", ("Completion(",)),
    Lines("engine.generate('hi', logits_processor=3)", ("logits_processor is int 3",), TYPE),
    Lines("engine.generate('hi', logits_processor=lambda ids, logits: 1 / 0)", ("ZeroDivisionError",), INVALID),
    Lines("t = zinc_rt.Tokenizer(model)\nt.decode(t.encode('hé 🎉'))", ("hé 🎉",)),
    Lines("zinc_rt.Tokenizer(model)", ("Tokenizer of 448 tokens",)),
    Lines("engine.detokenize([1000000])", ("ids[0]", "448", "1000000"), INVALID),
    Lines("len([event.text for event in session.stream('hi', max_tokens=3, ignore_eos=True)])", ("3",)),
    Lines("asyncio.run(session.agenerate('hi', max_tokens=2))", ("Completion(",)),
    Lines("async def f(): return [e.token_id async for e in session.astream('hi', max_tokens=3, ignore_eos=True)]\n"
          "len(asyncio.run(f()))", ("3",)),
    Lines("with engine.timeline() as timeline: engine.generate('hi', max_tokens=2)\ntimeline", ("Timeline",)),
    Lines("engine.logits(engine.tokenize('the thin')).shape", ("(4, 448)",)),
    Lines("engine.hidden([1], layer=9)", ("layer 9",), INVALID),
    Lines("e = zinc_rt.Engine(model)\ne.close()\ne.close()\ne", ("<zinc_rt.Engine, closed>",)),
    Lines("e = zinc_rt.Engine(model)\ne.close()\ne.generate('hi')", ("the engine is closed",), "Unavailable"),
    Lines("e = zinc_rt.Engine(model)\ntalk = e.conversation()\ne.close()\ntalk.say('hi')", ("closed",), "Unavailable"),
]  # fmt: skip

CHAT = "/v1/chat/completions"
HELLO = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 2}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}  # as curl -d says of any body
SERVER = [
    HttpCase("GET", "/", words=("<!doctype html>", "<title>zinc_rt")),
    HttpCase("GET", "/health", words=("ok",)),
    HttpCase("GET", "/v1/models", words=("tiny", "context_length")),
    HttpCase("POST", CHAT, HELLO, words=("chat.completion", "assistant", "usage")),
    HttpCase("POST", CHAT, '{"messages": [{"role": "user", "content": "hi"}], "max_tokens": 2}', words=("usage",),
          headers=FORM),
    HttpCase("POST", CHAT, {**HELLO, "stream": True}, words=("data: {", "chat.completion.chunk", "data: [DONE]")),
    HttpCase("POST", "/v1/completions", {"prompt": "hi", "max_tokens": 2}, words=("text_completion",)),
    HttpCase("POST", CHAT, {**HELLO, "temprature": 1}, 400, ("temprature", "no such field")),
    HttpCase("POST", CHAT, {**HELLO, "temperature": "hot"}, 400, ("temperature", "a number wanted")),
    HttpCase("POST", CHAT, {**HELLO, "max_tokens": -1}, 400, ("max_tokens", "1 to 16777216")),
    HttpCase("POST", CHAT, {"messages": "hi"}, 400, ("messages", "a list of 1 to 8192")),
    HttpCase("POST", CHAT, {}, 400, ("messages", "missing")),
    HttpCase("POST", CHAT, "{'messages': []}", 400, ("invalid_json", "byte 2")),
    HttpCase("POST", CHAT, {**HELLO, "model": "gpt-4"}, 404, ("gpt-4", "these are served: tiny")),
    HttpCase("GET", "/v1/modles", None, 404, ("there is no /v1/modles",)),
    HttpCase("GET", CHAT, None, 405, ("POST allowed",)),
    HttpCase("POST", "/v1/moderations", {}, 501, ("not served yet",)),
    HttpCase("POST", "/v1/rerank", {"query": "a", "documents": ["b"]}, 400,
             ("generates and scores no texts", "pooling")),
    HttpCase("POST", "/v1/embeddings", {"input": "hi"}, 400, ("generates and gives no embeddings", "pooling")),
]  # fmt: skip
# The server of these has a key, and was started with --tolerant.
SERVER_WITH_KEY = [
    HttpCase("POST", CHAT, HELLO, 401, ("key",)),
    HttpCase("POST", CHAT, HELLO, 401, ("key",), key="wrong"),
    HttpCase("POST", CHAT, HELLO, words=("usage",), key="secret"),
    HttpCase("POST", CHAT, {**HELLO, "temprature": 1}, words=("usage",), key="secret"),
    HttpCase("GET", "/v1/models", None, 401, ("key",)),
    HttpCase("GET", "/health", words=("ok",)),
]
