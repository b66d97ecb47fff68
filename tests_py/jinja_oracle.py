"""Python's jinja2 set up as transformers sets it up for chat templates: the oracle of the C++ engine."""

import datetime
import json

import jinja2
import jinja2.ext
from jinja2 import nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment


class GenerationBlocks(jinja2.ext.Extension):
    """{% generation %} marks what the model wrote; for the text it is a call block that prints its body."""

    tags = {"generation"}

    def parse(self, parser):
        lineno = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return nodes.CallBlock(self.call_method("_show"), [], [], body).set_lineno(lineno)

    @jinja2.pass_eval_context
    def _show(self, context, caller):
        return caller()


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def environment(now=None):
    """`now` fixes what strftime_now shows."""
    env = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[GenerationBlocks, jinja2.ext.loopcontrols]
    )
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = lambda format: (now or datetime.datetime.now()).strftime(format)
    return env


def render(source, context):
    return environment().from_string(source).render(**context)
