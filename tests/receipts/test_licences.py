"""INV-1: only licensed, distillable teachers, whatever the configuration claims."""

import pytest

from receipts.licences import (
    ALLOWED,
    APACHE_2,
    BUILTIN,
    MIT,
    OPENMDW,
    Licence,
    LicenceError,
    builtin_licence,
    declared_licences,
    is_closed,
    is_router_alias,
    require_distillable,
)

CLOSED = [
    *("gpt-4o", "GPT-4o", "gpt4", "gpt-4.1-mini", "gpt-3.5-turbo", "gpt-35-turbo", "gpt-5", "gpt-10"),
    *("openai/gpt-4.1", "azure-gpt-4o", "azure/gpt_4o", "chatgpt-4o-latest", "openrouter/openai/gpt-4o"),
    *("o1", "o1-preview", "o3-mini", "o4-mini", "o5-mini", "openai/o3-mini", "azure/o3", "azure-o3-mini"),
    *("anthropic/claude-x", "bedrock/us.anthropic.claude-x", "claude-3-opus@20240229", "anthropic/next-model"),
    *("us.anthropic.next-v1:0", "google/gemini-2", "models/gemini-pro", "my_gemini_mirror", "gemini"),
    *("x-ai/grok-4", "grok-2", "grok-1.5", "xai/next-model", "openai/next-model", "davinci-002", "text-davinci-003"),
    *("cohere/command-r-plus", "command-a", "qwen/qwen3-max", "qwen/qwen3-coder-plus", "qwen-turbo"),
    *("qwen/qwen3-omni-flash", "Qwen/Qwen3-TTS-Flash", "qwen/qwen3-max:free", "qwen/qwq-plus", "qvq-max-latest"),
]

OPEN = [
    *("openai/gpt-oss-120b", "gpt-oss-20b", "openrouter/openai/gpt-oss-120b", "nvidia/nemotron-3-ultra"),
    *("google/gemma-3", "qwen/qwen3-235b-a22b", "qwen/qwen3-coder-480b", "deepseek-ai/deepseek-v3.2"),
    *("qwen/qwen3-omni-30b-a3b-instruct", "qwen/qwen3-next-80b-a3b", "qwen/qwq-32b", "qwen/qwen3-maximus"),
    *("eleutherai/gpt-j-6b", "eleutherai/gpt-neox-20b", "openai-community/gpt2", "cerebras/cerebras-gpt-6.7b"),
    *("nomic-ai/gpt4all-j", "xai-org/grok-1", "acme/grokking-7b", "acme/claudette-7b", "aidc-ai/marco-o1"),
    *("allenai/olmo-2-32b", "acme/commander-7b", "mistralai/mistral-small-3.2", "meta-llama/llama-4"),
]

ALIASES = ["openrouter/auto", "openrouter/auto:floor", "openrouter/horizon", "acme/auto", "auto", "switchpoint/router"]


@pytest.mark.req("INV-1", "FR-3.2", "US-8")
@pytest.mark.parametrize("model", CLOSED)
def test_a_closed_family_is_refused_and_cannot_be_relabelled(model: str) -> None:
    assert is_closed(model)
    with pytest.raises(LicenceError, match="forbid training"):
        require_distillable(model, {model.lower(): APACHE_2})
    with pytest.raises(LicenceError, match="cannot be declared"):
        declared_licences(f"{model}=Apache-2.0")


@pytest.mark.req("INV-1", "FR-3.2")
@pytest.mark.parametrize("model", OPEN)
def test_an_open_model_is_not_refused_for_words_in_its_name(model: str) -> None:
    assert not is_closed(model)
    assert not is_router_alias(model)
    assert require_distillable(model, {model: MIT}) in (MIT, builtin_licence(model))


@pytest.mark.req("INV-1", "FR-3.53")
@pytest.mark.parametrize("model", ALIASES)
def test_a_router_alias_is_refused_since_nobody_knows_the_model_behind_it(model: str) -> None:
    with pytest.raises(LicenceError, match="router"):
        require_distillable(model, {model: APACHE_2})
    with pytest.raises(LicenceError, match="cannot be declared"):
        declared_licences(f"{model}=MIT")


@pytest.mark.req("INV-1", "FR-3.54")
@pytest.mark.parametrize("model", ["human", "Human", " HUMAN "])
def test_a_person_is_never_a_teacher(model: str) -> None:
    with pytest.raises(LicenceError, match="person"):
        require_distillable(model, {"human": MIT})
    with pytest.raises(LicenceError, match="cannot be declared"):
        declared_licences(f"{model}=MIT")


@pytest.mark.req("INV-1", "FR-3.2")
@pytest.mark.parametrize(
    "model",
    [
        *("google/gemma-3", "acme/unknown", "nemotron", "mistralai/mistral-small-instruct-2409", "zai-org/glm-4-9b"),
        *("deepseek-ai/deepseek-v3", "deepseek-ai/deepseek-r1-distill-llama-70b"),
    ],
)
def test_an_unknown_teacher_must_be_declared(model: str) -> None:
    with pytest.raises(LicenceError, match="unknown; declare it in RATCHET_TEACHER_LICENSES"):
        require_distillable(model, {})
    assert require_distillable(model, declared_licences(f"{model}=MIT")) == MIT


@pytest.mark.req("INV-1")
@pytest.mark.parametrize("model", ["", "   "])
def test_a_teacher_must_be_named(model: str) -> None:
    with pytest.raises(LicenceError, match="name the teacher model"):
        require_distillable(model, {})


@pytest.mark.req("INV-1", "FR-3.1")
@pytest.mark.parametrize(
    ("model", "licence"),
    [
        ("nvidia/nemotron-3-ultra", OPENMDW),
        (" NVIDIA/Nemotron-3-Super ", OPENMDW),
        ("Qwen/Qwen3-235B-A22B", APACHE_2),
        ("openai/gpt-oss-120b", APACHE_2),
        ("deepseek-ai/DeepSeek-V3-0324", MIT),
        ("zai-org/GLM-4.6", MIT),
    ],
)
def test_built_in_teachers_are_licensed_in_any_case(model: str, licence: Licence) -> None:
    assert require_distillable(model, {}) == licence


@pytest.mark.req("INV-1")
def test_every_built_in_licence_is_an_allowed_one_for_an_open_model() -> None:
    assert set(BUILTIN.values()) <= set(ALLOWED.values())
    assert not any(is_closed(prefix) or is_router_alias(prefix) for prefix in BUILTIN)
    assert all(prefix == prefix.lower() for prefix in BUILTIN)


@pytest.mark.req("INV-1", "FR-3.53")
def test_declarations_are_read_in_any_spacing_and_case_of_the_model() -> None:
    declared = declared_licences(" Acme/One = MIT ,, acme/two=CC-BY-4.0, ")
    assert declared == {"acme/one": MIT, "acme/two": ALLOWED["CC-BY-4.0"]}
    assert declared_licences("") == {}


@pytest.mark.req("INV-1", "FR-3.53")
@pytest.mark.parametrize(
    "entry", ["acme/one", "=MIT", "acme/one=", "acme/one=GPL-3.0", "acme/one=mit", "acme/one=Llama"]
)
def test_a_malformed_declaration_or_other_licence_is_refused(entry: str) -> None:
    with pytest.raises(LicenceError, match="must be model=LICENCE"):
        declared_licences(entry)


@pytest.mark.req("INV-1", "FR-3.53")
def test_a_built_in_or_declared_teacher_cannot_be_relabelled() -> None:
    with pytest.raises(LicenceError, match=r"contradicts its known licence OpenMDW-1\.1"):
        declared_licences("nvidia/nemotron-3-ultra=MIT")
    with pytest.raises(LicenceError, match="contradicts its known licence MIT"):
        declared_licences("acme/one=MIT,acme/one=Apache-2.0")
    assert require_distillable("nvidia/nemotron-3-ultra", {"nvidia/nemotron-3-ultra": MIT}) == OPENMDW


@pytest.mark.req("INV-1", "FR-3.53")
def test_every_wrong_declaration_is_listed() -> None:
    with pytest.raises(LicenceError) as caught:
        declared_licences("gpt-4o=MIT,acme/one=MIT,acme/two=GPL,openrouter/auto=MIT")
    assert [line.split(": ")[1].split()[0] for line in str(caught.value).splitlines()] == [
        "'gpt-4o=MIT'", "'acme/two=GPL'", "'openrouter/auto=MIT'",
    ]  # fmt: skip
