"""Do the parts of a layer move, keep and multiply what the docstrings say? Worked out by hand on small layers."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest

from commsim.training.block import Block, stack
from commsim.training.configs.well_known import model
from commsim.training.layers.attention import Attention
from commsim.training.layers.compressed_attention import CompressedAttention
from commsim.training.layers.delta_net import DeltaNet
from commsim.training.layers.experts import Experts
from commsim.training.layers.feed_forward import FeedForward
from commsim.training.layers.indexer import Indexer
from commsim.training.layers.latent_attention import LatentAttention
from commsim.training.layers.mamba import Mamba
from commsim.training.layers.scan import scan
from commsim.training.model import Model
from commsim.training.operations import Shard
from commsim.training.parameters import of_part
from commsim.training.work import embedding, head, work

if TYPE_CHECKING:
    from commsim.training.layers.part import Part
    from commsim.training.operations import Work

HIDDEN, VOCABULARY, TOKENS = 512, 1000, 256
SHARD = Shard(tokens=float(TOKENS), sequence=float(TOKENS))
ATTENTION, DENSE = Attention(8, 2, 64), FeedForward(1024)


def one_layer(block: Block) -> Model:
    blocks, kinds = stack([block])
    return Model("small", "a test", HIDDEN, VOCABULARY, blocks, kinds)


def asked(block: Block, shard: Shard = SHARD) -> Work:
    made = one_layer(block)
    return work(made, made.layers[0], shard)


def moved(of: Work) -> dict[str, tuple[float, float]]:
    """Return the elements per token that the memory-bound operations move, forward and backward, at two bytes each."""
    unit = 2 * TOKENS
    memory = [part for part in of.operations if part.kind == "memory"]
    return {part.name: (float(part.bytes) / unit, float(part.backward_bytes) / unit) for part in memory}


def kept(of: Work) -> dict[str, float]:
    """Return the elements per token that are kept."""
    totals: dict[str, float] = {}
    for tensor in of.stored:
        totals[tensor.name] = totals.get(tensor.name, 0) + float(tensor.bytes) / (2 * TOKENS)
    return totals


def test_a_dense_layer_moves() -> None:
    assert moved(asked(Block.of(ATTENTION, DENSE))) == {
        "norm": (2 * HIDDEN, 3 * HIDDEN),
        "rotary embedding": (2 * 10 * 64, 2 * 10 * 64),
        "residual": (3 * HIDDEN, 3 * HIDDEN),
        "activation": (3 * 1024, 5 * 1024),
    }


def test_a_plain_activation_reads_and_writes_one_tensor() -> None:
    plain = moved(asked(Block.of(FeedForward(1024, gated=False))))
    assert plain["activation"] == (2 * 1024, 3 * 1024)


def test_options_of_a_layer() -> None:
    plain = Block.of(ATTENTION, DENSE)
    names = [part.name for part in asked(plain).operations]
    assert [names.count(name) for name in ("norm", "post norm", "residual")] == [2, 0, 2]
    with_post = [part.name for part in asked(dataclasses.replace(plain, post_norm=True)).operations]
    assert with_post.count("post norm") == 2
    parallel = asked(dataclasses.replace(plain, parallel=True))
    assert [part.name for part in parallel.operations].count("norm") == 1
    assert kept(parallel)["norm output"] == HIDDEN
    assert parallel.weights == asked(plain).weights - HIDDEN
    dropped = asked(dataclasses.replace(plain, dropout=True))
    assert moved(dropped)["residual"] == (3.5 * HIDDEN, 3.5 * HIDDEN)
    assert kept(dropped)["dropout mask"] == 2 * HIDDEN / 2


def test_residual_streams() -> None:
    """Four streams: read to be joined, read and written to be mixed, and the part's input and output."""
    mixed = asked(Block.of(ATTENTION, DENSE))
    streams = asked(dataclasses.replace(Block.of(ATTENTION, DENSE), streams=4))
    assert moved(streams)["residual"] == ((3 * 4 + 2) * HIDDEN, (3 * 4 + 2) * HIDDEN)
    assert kept(streams)["layer input"] == 4 * HIDDEN
    assert streams.weights - mixed.weights == 2 * (4 * 4 + 2 * 4) * 4 * HIDDEN


def test_unfused_attention_moves_its_scores() -> None:
    shard = dataclasses.replace(SHARD, fused_attention=False)
    dropping = Block.of(dataclasses.replace(ATTENTION, dropout=True))
    assert moved(asked(dropping, shard))["softmax"] == (2 * 8 * TOKENS, 3 * 8 * TOKENS)
    assert moved(asked(dropping, shard))["softmax dropout"] == (2.5 * 8 * TOKENS, 2.5 * 8 * TOKENS)
    shapes = {part.name: (part.m, part.k, part.n, part.batch) for part in asked(dropping, shard).operations}
    assert shapes["scores"] == (TOKENS, 64, TOKENS, 8)
    assert shapes["context"] == (TOKENS, TOKENS, 64, 8)


def test_a_norm_of_queries_and_keys_and_a_gate() -> None:
    gated = asked(Block.of(dataclasses.replace(ATTENTION, gate=True, query_norm="head")))
    assert moved(gated)["query and key norm"] == (2 * 10 * 64, 3 * 10 * 64)
    assert moved(gated)["gate"] == (3 * 512, 5 * 512)
    assert kept(gated)["queries and keys before the norm"] == 10 * 64
    assert kept(gated)["gate and its input"] == 2 * 512


def test_experts_move_and_keep() -> None:
    layer = asked(Block.of(Experts(8, 2, 256)))
    assert moved(layer) | {"norm": (), "residual": ()} == {
        "norm": (),
        "residual": (),
        "routing": (2 * 8 * 2, 3 * 8 * 2),
        "permute": (3 * HIDDEN, 3 * HIDDEN),
        "sort by expert": (0, 0),
        "expert activation": (3 * 2 * 256, 5 * 2 * 256),
        "unpermute": (3 * HIDDEN, 3 * HIDDEN),
    }
    stored = kept(layer)
    assert stored["router scores"] == 2 * 8
    assert stored["expert input"] == 2 * HIDDEN
    assert stored["expert up"] == 2 * 2 * 256
    assert stored["expert activated"] == 2 * 256


def test_tokens_from_other_ranks_are_sorted() -> None:
    layer = asked(Block.of(Experts(8, 2, 256)), dataclasses.replace(SHARD, expert=4.0))
    assert moved(layer)["sort by expert"] == (2 * 2 * HIDDEN, 2 * 2 * HIDDEN)


def test_hybrid_ep_sorts_what_it_sends() -> None:
    """It permutes tokens in the kernel that brings them; DeepEP leaves that to another."""
    shard = dataclasses.replace(SHARD, expert=4.0, copies=False)
    hybrid = asked(Block.of(Experts(8, 2, 256)), dataclasses.replace(shard, sorts=False))
    deep = asked(Block.of(Experts(8, 2, 256)), shard)
    assert set(moved(deep)) - set(moved(hybrid)) == {"sort by expert"}


def test_rows_of_narrow_formats_are_padded() -> None:
    """Read and written on the way to the experts and on the way back; Hybrid-EP leaves gaps where it sorts."""
    shard = dataclasses.replace(SHARD, expert=4.0, saved=1.0)
    narrow = asked(Block.of(Experts(8, 2, 256)), shard)
    order = [part.name for part in narrow.operations]
    first = order.index("permute")
    assert order[first : first + 4] == ["permute", "sort by expert", "pad", "expert up"]
    assert order[first + 5 : first + 9] == ["expert down", "pad", "sort by expert", "unpermute"]
    assert moved(narrow)["pad"] == (2 * 2 * HIDDEN, 2 * 2 * HIDDEN)
    for other in (dataclasses.replace(shard, saved=2.0), dataclasses.replace(shard, sorts=False)):
        assert "pad" not in moved(asked(Block.of(Experts(8, 2, 256)), other))


def test_what_is_sent_once_is_copied_where_it_arrives() -> None:
    """A token's two experts are on 4 (1 - (3/4)^2) = 1.75 of four ranks: so often it is read, and twice written."""
    shard = dataclasses.replace(SHARD, expert=4.0, copies=False)
    assert moved(asked(Block.of(Experts(8, 2, 256)), shard))["sort by expert"][0] == pytest.approx(3.75 * HIDDEN)


def test_latent_experts_are_sent_at_their_latent_width() -> None:
    """Kimi K3 projects tokens to half their width before they leave, and back after the sum."""
    known = model("kimi-k3")
    layer = known.block("linear-moe")
    assert layer.experts
    assert layer.experts.sent(known.hidden) == 3584
    shapes = {part.name: (part.k, part.n) for part in work(known, "linear-moe", SHARD).operations}
    assert shapes["latent down"] == (7168, 3584)
    assert shapes["expert up"] == (3584, 2 * 3072)
    assert shapes["latent up"] == (3584, 7168)
    assert shapes["shared up"] == (7168, 2 * 2 * 3072)


def test_compressed_attention() -> None:
    """A query sees the 32 latest tokens, and the best 8 of one pooled entry for every 4 tokens."""
    part = CompressedAttention(8, 64, 128, 32, output_groups=2, output_rank=96, stride=4, indexer=Indexer(4, 32, 8))
    layer = asked(Block.of(part))
    shapes = {each.name: (each.m, each.k, each.n, each.batch) for each in layer.operations}
    assert shapes["compressor"][1:3] == (HIDDEN, 2 * 2 * 64)
    assert shapes["indexer key"][1:3] == (HIDDEN, 2 * 2 * 32)
    assert shapes["output down"] == (TOKENS, 8 * 64 / 2, 96, 2)
    assert shapes["output up"] == (TOKENS, 2 * 96, HIDDEN, 1)
    seen = (32 - 32**2 / (2 * 256)) + (8 - 8**2 / (2 * 64))
    assert shapes["attention"] == (TOKENS, 64, seen, 8)
    assert shapes["indexer scores"] == (TOKENS, 32, 256 / 4 / 2, 4)
    assert part.exchanged(SHARD) == 64 * 1.25
    unpooled = dataclasses.replace(part, stride=0, indexer=None)
    assert of_part(part, HIDDEN).total > of_part(unpooled, HIDDEN).total
    assert unpooled.exchanged(SHARD) == 64


def test_latent_attention() -> None:
    """Latents are normalised on their own tokens; rotation is in place, keys are put together."""
    part = LatentAttention(8, kv_rank=96, nope_dim=64, rope_dim=32, value_dim=48, query_rank=128, gate=True)
    layer = asked(Block.of(part))
    turned = 8 * (2 * 32 + 64 + (64 + 32))  # per head: the rope part of queries twice, keys from their two parts
    assert moved(layer) | {"norm": (), "residual": ()} == {
        "norm": (),
        "residual": (),
        "latent norm": (2 * (96 + 128), 3 * (96 + 128)),
        "rotary embedding": (turned, turned),
        "gate": (3 * 8 * 48, 5 * 8 * 48),
    }
    stored = kept(layer)
    assert stored["latents"] == 2 * (96 + 128) + 32
    assert stored["query, key, value"] == 2 * 8 * (64 + 32) + 8 * 48
    freed = layer.kept() - layer.kept(frozenset({"mla_up_proj"}))
    assert freed == 2 * TOKENS * stored["query, key, value"]


MIXERS: list[tuple[Part, str, float, int]] = [
    (Mamba(16, 64, 32, 2), "scan", 7 * 1024 * 32, 2 * 1024 + 2 * 2 * 32 + 16),
    (DeltaNet(4, 8, 64, 32), "delta rule", 8 * 8 * 64 * 32, 2 * 4 * 64 + 8 * (2 * 32 + 2)),
]


@pytest.mark.parametrize(("part", "name", "flops", "width"), MIXERS)
def test_recurrent_mixers(part: Part, name: str, flops: float, width: int) -> None:
    layer = asked(Block.of(part))
    one = next(each for each in layer.operations if each.name == name)
    assert one.flops == flops * TOKENS
    assert one.backward_flops == 2.5 * one.flops
    assert 2 < one.backward_bytes / one.bytes < 4, "some ten kernels where the forward pass has four"
    assert layer.operations[1].n == width
    assert kept(layer)["projected input"] == width


def test_a_scan_moves_its_inputs_and_the_states_of_its_chunks() -> None:
    """1,024 tokens are 8 chunks; on each of two ranks a chunk has the states of 4 heads of 64 x 16.

    Forward inputs are touched one and a half times at two bytes, states move 12 bytes each; backward 5.5 times and 34
    bytes. The kernels reach 0.7 of the rate.
    """
    found = scan("scan", Shard(tokens=1024.0, sequence=1024.0, tensor=2.0), 1e3, 500.0, (8, 64, 16))
    inputs, states = 1024 * 500 * 2, 8 * 4 * 64 * 16
    assert found.bytes == pytest.approx((1.5 * inputs + 12 * states) / 0.7)
    assert found.backward_bytes == pytest.approx((5.5 * inputs + 34 * states) / 0.7)


def test_ranks_of_a_delta_net() -> None:
    """Kimi Linear: decay per channel through a low rank, and here the gate too."""
    part = DeltaNet(8, 8, 64, 64, decay_rank=16, gate_rank=32)
    shapes = {each.name: (each.inputs, each.width) for each in part.projections(HIDDEN)}
    assert shapes == {
        "query, key, value": (HIDDEN, 8 * (3 * 64 + 1)),
        "decay down": (HIDDEN, 16),
        "decay up": (16, 8 * 64),
        "gate down": (HIDDEN, 32),
        "gate up": (32, 8 * 64),
        "output": (8 * 64, HIDDEN),
    }


def test_what_context_ranks_exchange() -> None:
    """Per token: keys and values; latent attention expands them first; recurrent mixers give all their channels."""
    shard = dataclasses.replace(SHARD, tensor=4.0)
    assert ATTENTION.exchanged(SHARD) == 2 * (64 + 64)
    assert ATTENTION.exchanged(shard) == 64 + 64
    latent = model("deepseek-v3").block("latent-moe").latent_attention
    assert latent
    assert latent.exchanged(shard) == 128 / 4 * (192 + 128)
    assert Mamba(16, 64, 32, 2).exchanged(shard) == 2 * 4 * 64
    assert DeltaNet(4, 8, 64, 32).exchanged(shard) == 2 * 64 + 2 * 2 * 32


def test_ends_move() -> None:
    made = one_layer(Block.of(ATTENTION, DENSE))
    assert moved(embedding(made, SHARD)) == {"embedding": (2 * HIDDEN, HIDDEN + 2 * 2 * HIDDEN)}
    assert moved(head(made, SHARD)) == {
        "norm": (2 * HIDDEN, 3 * HIDDEN),
        "cross entropy": (3 * VOCABULARY, 2 * VOCABULARY),
    }
