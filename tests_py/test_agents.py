"""Real agents and clients against the server: a tool loop of five turns each, of a model that recites the calls.

Agents are looked for in the path and in ZRT_AGENTS, the folder in which scripts/test.sh --slow has npm install them.
"""

import asyncio
import json
import os
import pathlib
import shutil
import subprocess

import pytest

import scripted_model
from server_process import serving

TURNS = 5
pytestmark = pytest.mark.slow


def program(name):
    places = [os.environ.get("PATH", ""), os.environ.get("ZRT_AGENTS", "")]
    found = shutil.which(name, path=os.pathsep.join(filter(None, places)))
    if found is None:
        pytest.skip(f"the agent {name} is not installed")
    return found


def scripts(tool, arguments):
    """Five turns that call the tool and append their number to a file each, then an answer."""
    turns = {
        str(turn): f"Step {turn}, I do it now{'!' * turn}\n" + scripted_model.call(tool, json.dumps(arguments(turn)))
        for turn in range(TURNS)
    }
    return {**turns, str(TURNS): "All of the steps are done, good bye."}


def shell(turn):
    return f"echo turn{turn} >> turn{turn}.txt"


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A folder to work in, and a home that has no settings of whoever runs the test."""
    for name in ("home", "work"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PWD", str(tmp_path / "work"))
    return tmp_path


def serve(home, tool, arguments):
    scripted_model.write(home / "m.gguf", scripts(tool, arguments), context=200_000)
    return serving(home / "m.gguf", "--id", "m", "--max-context", "200000", "--max-slots", "4")


def run(home, *command, **env):
    done = subprocess.run(
        command,
        cwd=home / "work",
        env={**os.environ, **env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    found = {path.name: path.read_text() for path in (home / "work").glob("turn*.txt")}
    assert found == {f"turn{turn}.txt": f"turn{turn}\n" for turn in range(TURNS)}
    return done.stdout


def test_claude_code(home):
    claude = program("claude")
    arguments = lambda turn: {"command": shell(turn), "description": f"Append {turn}"}  # noqa: E731
    with serve(home, "Bash", arguments) as server:
        out = run(
            home,
            *(claude, "-p", "Do five steps", "--dangerously-skip-permissions", "--output-format", "json"),
            ANTHROPIC_BASE_URL=server.url,
            ANTHROPIC_AUTH_TOKEN="none",
            ANTHROPIC_MODEL="m",
            ANTHROPIC_SMALL_FAST_MODEL="m",
            CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1",
            IS_SANDBOX="1",
        )
    answer = json.loads(out)
    assert answer["result"] == "All of the steps are done, good bye."
    assert answer["num_turns"] == TURNS + 1
    # The history comes back as it was, so that all but the last turn of each prompt is found in the cache.
    assert answer["usage"]["cache_read_input_tokens"] > 3 * answer["usage"]["input_tokens"]


def test_codex(home):
    codex = program("codex")
    with serve(home, "exec_command", lambda turn: {"cmd": shell(turn)}) as server:
        settings = home / "home" / ".codex"
        settings.mkdir()
        (settings / "config.toml").write_text(
            'model = "m"\nmodel_provider = "here"\napproval_policy = "never"\nsandbox_mode = "danger-full-access"\n'
            f'[model_providers.here]\nname = "here"\nbase_url = "{server.url}/v1"\nwire_api = "responses"\n'
        )
        assert "All of the steps are done" in run(home, codex, "exec", "--skip-git-repo-check", "Do five steps")


def test_opencode(home):
    opencode = program("opencode")
    arguments = lambda turn: {"command": shell(turn), "description": f"Append {turn}"}  # noqa: E731
    with serve(home, "bash", arguments) as server:
        here = {
            "npm": "@ai-sdk/openai-compatible",
            "name": "here",
            "options": {"baseURL": f"{server.url}/v1"},
            "models": {"m": {"name": "m", "tool_call": True}},
        }
        config = {"provider": {"here": here}, "model": "here/m", "permission": {"bash": "allow"}}
        out = run(
            home,
            *(opencode, "run", "-m", "here/m", "Do five steps"),
            OPENCODE_CONFIG_CONTENT=json.dumps(config),
            OPENCODE_DISABLE_MODELS_FETCH="1",
        )
    assert "All of the steps are done" in out


def add(turn):
    return {"a": turn, "b": 1}


def adder(agents):
    """A tool of openai-agents, and the pairs that it was called with."""
    agents.set_tracing_disabled(True)
    seen = []

    @agents.function_tool
    def add_up(a: int, b: int) -> int:
        """Adds two numbers up."""
        seen.append((a, b))
        return a + b

    return add_up, seen


def model_of(agents, server, api):
    openai = pytest.importorskip("openai")
    kind = agents.OpenAIChatCompletionsModel if api == "chat" else agents.OpenAIResponsesModel
    return kind(model="m", openai_client=openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none"))


@pytest.mark.parametrize("api", ["chat", "responses"])
def test_openai_agents(home, api):
    agents = pytest.importorskip("agents")
    add_up, seen = adder(agents)

    with serve(home, "add_up", add) as server:
        agent = agents.Agent(name="a", model=model_of(agents, server, api), tools=[add_up])
        result = asyncio.run(agents.Runner.run(agent, "Add up, five times"))
    assert [a for a, _ in seen] == [*range(TURNS)]
    assert result.final_output == "All of the steps are done, good bye."


def test_langchain(home):
    models = pytest.importorskip("langchain_openai")
    messages = pytest.importorskip("langchain_core.messages")
    with serve(home, "add_up", add) as server:
        tool = {
            "name": "add_up",
            "description": "Adds two numbers up.",
            "parameters": {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}},
        }
        model = models.ChatOpenAI(model="m", base_url=f"{server.url}/v1", api_key="none").bind_tools([tool])
        history = [messages.HumanMessage("Add up, five times")]
        for turn in range(TURNS):
            history.append(model.invoke(history))
            (call,) = history[-1].tool_calls
            assert (call["name"], call["args"]) == ("add_up", add(turn))
            history.append(messages.ToolMessage(str(turn + 1), tool_call_id=call["id"]))
        assert model.invoke(history).content == "All of the steps are done, good bye."


def test_anthropic_client(home):
    anthropic = pytest.importorskip("anthropic")
    tool = {"name": "add_up", "input_schema": {"type": "object", "properties": {"a": {"type": "integer"}}}}
    with serve(home, "add_up", add) as server:
        client = anthropic.Anthropic(base_url=server.url, api_key="none")
        history = [{"role": "user", "content": "Add up, five times"}]
        for turn in range(TURNS):
            with client.messages.stream(model="m", max_tokens=400, messages=history, tools=[tool]) as stream:
                message = stream.get_final_message()
            assert message.stop_reason == "tool_use"
            call = message.content[-1]
            assert call.input == add(turn)
            history.append({"role": "assistant", "content": [block.model_dump() for block in message.content]})
            result = {"type": "tool_result", "tool_use_id": call.id, "content": str(turn + 1)}
            history.append({"role": "user", "content": [result]})
        last = client.messages.create(model="m", max_tokens=400, messages=history, tools=[tool])
        assert last.content[0].text == "All of the steps are done, good bye."


def test_ollama_client(home):
    ollama = pytest.importorskip("ollama")

    def add_up(a: int, b: int) -> int:
        """Adds two numbers up."""
        return a + b

    with serve(home, "add_up", add) as server:
        client = ollama.Client(host=server.url)
        history = [{"role": "user", "content": "Add up, five times"}]
        for turn in range(TURNS):
            message = client.chat("m", history, tools=[add_up]).message
            (call,) = message.tool_calls
            assert call.function.arguments == add(turn)
            result = {"role": "tool", "tool_name": "add_up", "content": str(add_up(**call.function.arguments))}
            history += [message, result]
        assert client.chat("m", history, tools=[add_up]).message.content == "All of the steps are done, good bye."
        assert [model.model for model in client.list().models] == ["m"]


# Loops of the real model, which is too small to choose: each turn is forced, and the grammar makes the call fit.
# Prompts of Claude Code, Codex and OpenCode are longer than its context of 8,192 tokens.


def small(demo_model):
    return serving(demo_model, "--id", "m", "--tools", "hermes", "--max-slots", "2", "-c", "8192")


@pytest.mark.parametrize("api", ["chat", "responses"])
def test_openai_agents_with_a_real_model(demo_model, api):
    agents = pytest.importorskip("agents")
    add_up, seen = adder(agents)

    def after(_, results):
        return agents.ToolsToFinalOutputResult(is_final_output=len(seen) == TURNS, final_output=results[-1].output)

    with small(demo_model) as server:
        agent = agents.Agent(
            name="a",
            model=model_of(agents, server, api),
            tools=[add_up],
            tool_use_behavior=after,
            reset_tool_choice=False,
            model_settings=agents.ModelSettings(
                tool_choice="required", parallel_tool_calls=False, temperature=0, max_tokens=200
            ),
        )
        result = asyncio.run(agents.Runner.run(agent, "Add 17 and 25, then go on adding."))
    assert len(seen) == TURNS and all(type(n) is int for pair in seen for n in pair)
    assert int(result.final_output) == sum(seen[-1])


def test_langchain_with_a_real_model(demo_model):
    models = pytest.importorskip("langchain_openai")
    messages = pytest.importorskip("langchain_core.messages")
    colour = {"type": "string", "enum": ["red", "green", "blue"]}
    tool = {
        "name": "paint",
        "description": "Paints a wall.",
        "parameters": {
            "type": "object",
            "properties": {"wall": {"type": "integer", "minimum": 1, "maximum": 4}, "colour": colour},
            "required": ["wall", "colour"],
        },
    }
    with small(demo_model) as server:
        options = {"temperature": 0, "max_completion_tokens": 200, "parallel_tool_calls": False}
        bare = models.ChatOpenAI(model="m", base_url=f"{server.url}/v1", api_key="none")
        model = bare.bind_tools([tool], tool_choice="required", **options)
        history = [messages.HumanMessage("Paint the walls of my room.")]
        for turn in range(TURNS):
            history.append(model.invoke(history))
            (call,) = history[-1].tool_calls
            assert call["name"] == "paint" and set(call["args"]) == {"wall", "colour"}
            assert 1 <= call["args"]["wall"] <= 4 and call["args"]["colour"] in colour["enum"]
            history.append(messages.ToolMessage(f"Wall {turn} is done.", tool_call_id=call["id"]))
        assert bare.invoke(history, temperature=0, max_completion_tokens=20).content


def test_where_agents_are_looked_for(monkeypatch, tmp_path):
    (tmp_path / "an-agent").write_text("#!/bin/sh\n")
    (tmp_path / "an-agent").chmod(0o755)
    monkeypatch.setenv("ZRT_AGENTS", str(tmp_path))
    assert pathlib.Path(program("an-agent")) == tmp_path / "an-agent"
