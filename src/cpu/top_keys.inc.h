/* SPDX-License-Identifier: Apache-2.0 */
/* top_keys.inc.h - the first values of a line in order, included by row_top_k.c once for each width of keys.
 *
 * KEY: an unsigned type that holds the order of a value above the 32 bits of its place. KEY_AT(r, x, i): the key of
 * value i. KEYS(name): the name for this width. */
/* Sorts by merging from the bottom up; runs of 8 are sorted by insertion. */
static void KEYS(sort)(KEY *at, KEY *spare, int64_t n)
{
    for (int64_t start = 0; start < n; start += 8) {
        const int64_t end = start + 8 < n ? start + 8 : n;
        for (int64_t i = start + 1; i < end; i++) {
            const KEY x = at[i];
            int64_t k = i;
            for (; k > start && at[k - 1] > x; k--) at[k] = at[k - 1];
            at[k] = x;
        }
    }
    KEY *from = at, *to = spare;
    for (int64_t width = 8; width < n; width *= 2) {
        for (int64_t start = 0; start < n; start += 2 * width) {
            const int64_t middle = start + width < n ? start + width : n;
            const int64_t end = middle + width < n ? middle + width : n;
            int64_t a = start, b = middle, i = start;
            while (a < middle && b < end) {
                const KEY x = from[a], y = from[b];
                const bool takes_a = x < y;
                to[i++] = takes_a ? x : y;
                a += takes_a;
                b += !takes_a;
            }
            memcpy(to + i, from + a, (size_t)(middle - a) * sizeof *to);
            memcpy(to + i + (middle - a), from + b, (size_t)(end - b) * sizeof *to);
        }
        KEY *was = from;
        from = to;
        to = was;
    }
    if (from != at) memcpy(at, from, (size_t)n * sizeof *at);
}

/* The k smallest of n keys come first, in any order. */
static void KEYS(divide)(KEY *at, KEY *spare, int64_t n, int64_t k)
{
    int64_t low = 0, high = n - 1;
    for (int round = 0; low < high; round++) {
        if (round == 64) { /* keys that divide badly */
            KEYS(sort)(at + low, spare, high + 1 - low);
            return;
        }
        const KEY x = at[low], y = at[low + (high - low) / 2], z = at[high];
        const KEY least = x < y ? x : y, most = x < y ? y : x, pivot = z < least ? least : z > most ? most : z;
        int64_t i = low, j = high;
        while (i <= j) {
            while (at[i] < pivot) i++;
            while (at[j] > pivot) j--;
            if (i > j) break;
            const KEY was = at[i];
            at[i++] = at[j];
            at[j--] = was;
        }
        if (k - 1 <= j) high = j;
        else if (k - 1 >= i) low = i;
        else return;
    }
}

/* The smallest keys of a line, sorted by insertion. */
static void KEYS(few)(const top_record *r, const void *x, KEY *keys)
{
    int64_t count = 0;
    for (int64_t i = 0; i < r->n; i++) {
        if (count == r->k) {
            i = r->seek(x, r->n, i, PLACE_OF(keys[count - 1]), r->largest);
            if (i == r->n) return;
        } else {
            count++;
        }
        const KEY key = KEY_AT(r, x, i);
        int64_t at = count - 1;
        for (; at > 0 && keys[at - 1] > key; at--) keys[at] = keys[at - 1];
        keys[at] = key;
    }
}

static void KEYS(many)(const top_record *r, const void *x, KEY *keys)
{
    const int64_t n = r->n, k = r->k;
    KEY *spare = keys + r->room;
    int64_t count = 0, least = -1; /* least: the place of the last one that is kept */
    for (int64_t i = 0; i < n; i++) {
        if (least >= 0) i = r->seek(x, n, i, least, r->largest);
        if (i == n) break;
        keys[count++] = KEY_AT(r, x, i);
        if (count < r->room) continue;
        KEYS(divide)(keys, spare, count, k);
        KEY most = 0;
        for (int64_t at = 0; at < k; at++) most = keys[at] > most ? keys[at] : most;
        count = k;
        least = PLACE_OF(most);
    }
    if (count > k) KEYS(divide)(keys, spare, count, k);
    KEYS(sort)(keys, spare, k);
}

static void KEYS(line)(const top_record *r, const kernel_run *k, const void *x, int64_t value_at, int64_t index_at,
                       void *room)
{
    KEY *keys = room;
    (r->k <= FEW ? KEYS(few) : KEYS(many))(r, x, keys);
    for (int64_t i = 0; i < r->k; i++) {
        const int64_t at = PLACE_OF(keys[i]);
        put(r, k, i, x, at, at, value_at, index_at);
    }
}

#undef KEY
#undef KEY_AT
#undef KEYS
