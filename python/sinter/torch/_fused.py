# SPDX-License-Identifier: Apache-2.0
"""Decompositions of what torch.nn.MultiheadAttention and torch.nn.TransformerEncoderLayer call for inference: operators of a whole
layer, which torch itself does not decompose."""
import torch
from torch.nn import functional as F

aten = torch.ops.aten


def is_hidden(mask, mask_type, batch, heads, queries, keys):
    """A mask as bool [batch, heads, queries, keys] or broadcast to that; True: not to be looked at. torch takes numbers as bool."""
    mask = mask if mask.dtype == torch.bool else mask != 0
    if mask_type == 0:                                  # of queries and keys
        return mask.reshape(1, 1, queries, keys)
    return mask.reshape(batch, 1, 1, keys) if mask_type == 1 else mask.reshape(batch, heads, queries, keys)


def attention(query, key, value, embed_dim, num_head, qkv_weight, qkv_bias, proj_weight, proj_bias, mask=None, need_weights=True,
              average_attn_weights=True, mask_type=None):
    """aten._native_multi_head_attention"""
    batch, queries, keys = query.shape[0], query.shape[1], key.shape[1]

    def heads(x, index, length):
        part = slice(index * embed_dim, (index + 1) * embed_dim)
        return F.linear(x, qkv_weight[part], qkv_bias[part]).reshape(batch, length, num_head, -1).transpose(1, 2)

    q, k, v = heads(query, 0, queries), heads(key, 1, keys), heads(value, 2, keys)
    hidden = None if mask is None else is_hidden(mask, mask_type, batch, num_head, queries, keys)
    if need_weights or mask is not None:                # a row of which everything is hidden gives NaN, as in torch
        scores = torch.matmul(q * q.shape[-1] ** -0.5, k.transpose(-2, -1))
        scores = scores if hidden is None else scores.masked_fill(hidden, -torch.inf)
        weights = torch.softmax(scores, -1)
        made, weights = torch.matmul(weights, v), weights.mean(1) if average_attn_weights else weights
    else:
        made, weights = F.scaled_dot_product_attention(q, k, v), None
    weights = weights if need_weights else query.new_empty(0)
    return F.linear(made.transpose(1, 2).reshape(batch, queries, embed_dim), proj_weight, proj_bias), weights


def encoder_layer(src, embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias, use_gelu, norm_first, eps, norm_weight_1,
                  norm_bias_1, norm_weight_2, norm_bias_2, ffn_weight_1, ffn_bias_1, ffn_weight_2, ffn_bias_2, mask=None, mask_type=None):
    """aten._transformer_encoder_layer_fwd"""
    activation = F.gelu if use_gelu else F.relu

    def attend(x):
        return attention(x, x, x, embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias, mask, False, True, mask_type)[0]

    def feed(x):
        return F.linear(activation(F.linear(x, ffn_weight_1, ffn_bias_1)), ffn_weight_2, ffn_bias_2)

    def norm(x, weight, bias):
        return F.layer_norm(x, (embed_dim,), weight, bias, eps)

    if norm_first:
        x = src + attend(norm(src, norm_weight_1, norm_bias_1))
        return x + feed(norm(x, norm_weight_2, norm_bias_2))
    x = norm(src + attend(src), norm_weight_1, norm_bias_1)
    return norm(x + feed(x), norm_weight_2, norm_bias_2)


DECOMPOSITIONS = {aten._native_multi_head_attention.default: attention, aten._transformer_encoder_layer_fwd.default: encoder_layer}
