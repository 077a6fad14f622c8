/* SPDX-License-Identifier: Apache-2.0 */
/* gaps.c - free parts in a treap by offset. Each node knows the largest gap below it, so that the lowest gap of a size
 * is found on one way down. Priorities are hashes of offsets: the same calls give the same tree. */
#include "plan/gaps.h"

struct gap {
    uint64_t at, size, largest; /* largest: here and below */
    uint64_t priority;
    gap *left, *right;
};

static void update(gap *n)
{
    n->largest = n->size;
    if (n->left && n->left->largest > n->largest) n->largest = n->left->largest;
    if (n->right && n->right->largest > n->largest) n->largest = n->right->largest;
}

/* Those before `at`, and the others. */
static void split(gap *n, uint64_t at, gap **before, gap **others)
{
    if (!n) {
        *before = *others = NULL;
    } else if (n->at < at) {
        split(n->right, at, &n->right, others);
        *before = n;
        update(n);
    } else {
        split(n->left, at, before, &n->left);
        *others = n;
        update(n);
    }
}

/* All of `a` lie before `b`. */
static gap *merge(gap *a, gap *b)
{
    if (!a || !b) return a ? a : b;
    if (a->priority > b->priority) {
        a->right = merge(a->right, b);
        update(a);
        return a;
    }
    b->left = merge(a, b->left);
    update(b);
    return b;
}

static gap *gap_new(gaps *g, uint64_t at, uint64_t size)
{
    gap *n = g->spare;
    if (n) g->spare = n->left;
    else n = ARENA_NEW(g->a, gap, 1);
    if (!n) return NULL;
    uint64_t z = (at + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    *n = (gap){ .at = at, .size = size, .largest = size, .priority = z ^ z >> 27 };
    return n;
}

static void gap_drop(gaps *g, gap *n)
{
    n->left = g->spare;
    g->spare = n;
}

/* Takes the last gap (or the first) out of a tree. */
static gap *remove_end(gap **root, bool is_last)
{
    gap *n = *root;
    if (is_last ? n->right != NULL : n->left != NULL) {
        gap *found = remove_end(is_last ? &n->right : &n->left, is_last);
        update(n);
        return found;
    }
    *root = is_last ? n->left : n->right;
    n->left = n->right = NULL;
    return n;
}

void gaps_init(gaps *g, arena *a)
{
    *g = (gaps){ .a = a };
    g->root = gap_new(g, 0, (uint64_t)1 << 63);
}

uint64_t gaps_take(gaps *g, uint64_t size)
{
    const gap *n = g->root;
    while (n && n->largest >= size) {
        if (n->left && n->left->largest >= size) n = n->left;
        else if (n->size >= size) break;
        else n = n->right;
    }
    if (!n || n->size < size) return 0; /* 2^63 bytes are taken, or memory ran out */
    const uint64_t at = n->at, left = n->size - size;
    gap *before, *others;
    split(g->root, at, &before, &others);
    gap_drop(g, remove_end(&others, false));
    gap *rest = left ? gap_new(g, at + size, left) : NULL;
    g->root = merge(merge(before, rest), others);
    return at;
}

void gaps_give(gaps *g, uint64_t at, uint64_t size)
{
    gap *before, *others;
    split(g->root, at, &before, &others);
    if (before) {
        gap *last = remove_end(&before, true);
        if (last->at + last->size == at) {
            at = last->at;
            size += last->size;
            gap_drop(g, last);
        } else {
            before = merge(before, last);
        }
    }
    if (others) {
        gap *first = remove_end(&others, false);
        if (first->at == at + size) {
            size += first->size;
            gap_drop(g, first);
        } else {
            others = merge(first, others);
        }
    }
    g->root = merge(merge(before, gap_new(g, at, size)), others);
}
