/* SPDX-License-Identifier: Apache-2.0 */
/* rnn.cu - the steps of a recurrent layer, behind rnn_input.cu's product.
 *
 * A direction and BATCH sequences are taken by a cluster of CLUSTER blocks (one block where chips have no clusters),
 * which share the units. LANES threads make a unit: each multiplies its part of the unit's GATES rows of R by the
 * state, and they add up by shuffles. A row is cut into pieces of 16 bytes. A thread has its first HELD pieces in
 * registers, the next KEPT in shared memory, and reads the others at each step. The new state goes to all blocks of
 * the cluster without waiting: each block has a barrier that counts the bytes that come.
 * A layer of one step (-DALONE) is one launch: blocks of any number, which do not meet, take W and x like R and h.
 * -DCELL, -DGATES, -DHIDDEN, -DLINEAR (gru: the reset gate comes after the product), -DJOINT (lstm: i = 1 - f),
 * -DPEEPHOLE, -DWIDENED (there are registers for what is held as floats), -DUSUAL (the activations that ONNX takes
 * where none are named). */
#include "generated.cuh"
#include "rnn_cell.cuh"

#define MEETS (CLUSTER > 1 && !ALONE)          /* blocks that share the units are a cluster */

enum {
    PIECE = 16 / sizeof(element),                       /* elements */
    QUAD = 16 / sizeof(acc), QUADS = PIECE / QUAD,      /* numbers of a load of the state, loads for a piece */
    SPAN = (HIDDEN + CLUSTER - 1) / CLUSTER,            /* units of a block that is full */
    AT_ONCE = BLOCK / LANES,                            /* units that a block makes at once */
    TURNS = (SPAN + AT_ONCE - 1) / AT_ONCE,
    /* What the lanes of a unit finish: with several sequences each takes some. With fewer sequences than lanes, OTHERS lanes
     * share a sequence, and the four gates of an lstm are spread over them: OWN are a lane's. */
    SEQUENCES = BATCH > LANES ? BATCH / LANES : 1, OTHERS = BATCH > LANES ? 1 : LANES / BATCH,
    SPREAD = CELL != RNN_CELL_LSTM || PEEPHOLE ? 1 : OTHERS < 4 ? OTHERS : 4, OWN = GATES / SPREAD,
    AGAIN = CELL == RNN_CELL_GRU && !LINEAR,            /* a second product a step, of the state that was reset */
    SUMS = GATES * BATCH >= 4 || QUAD < 4 ? 1 : 4 / (GATES * BATCH)     /* chains of additions, against latency */
};

/* Rows of SIZE numbers, and the vector of as many that they are multiplied with. */
template <int SIZE> struct cut {
    enum {
        PIECES = (SIZE + PIECE - 1) / PIECE,
        EACH = (PIECES + LANES - 1) / LANES,            /* pieces of a row that a thread multiplies: every LANES-th */
        ROOM = EACH * LANES * PIECE                     /* numbers of the vector, with zeros behind */
    };
    /* Where the vector has number k: lanes read pieces side by side without conflicts. */
    DEVICE i32 place(i32 k) { return (k % PIECE / QUAD * (EACH * LANES) + k / PIECE) * QUAD + k % QUAD; }
};
enum { STATE = cut<HIDDEN>::ROOM, X_ROOM = ALONE ? cut<ALONE ? INPUTS : 1>::ROOM : 0 };
DEVICE i32 place(i32 unit) { return cut<HIDDEN>::place(unit); }

union piece { u32x4 bits; element at[PIECE]; };
DEVICE void renew(piece &p)
{
    renew(p.bits.x);
    renew(p.bits.y);
    renew(p.bits.z);
    renew(p.bits.w);
}
struct quad { alignas(16) acc at[QUAD]; };

/* A direction's rows of R or W. */
struct layer {
    const element *r;
    i64 step, pitch;                    /* elements from a number of a row to the next; from a row to the next */
    bool is_whole;                      /* pieces may be read as they are */
};
DEVICE layer layer_of(address at, i32 direction, const wide *stride)
{
    const element *r = (const element *)at + direction * stride[0];
    return { r, stride[2], stride[1], stride[2] == 1 && stride[1] % PIECE == 0 && (u64)r % 16 == 0 };
}

/* Piece `at` of the row of a unit's gate; zeros behind its end. */
template <int SIZE> DEVICE piece piece_of(const layer &l, i32 unit, i32 g, i32 at)
{
    piece p;
    p.bits = {};
    const i32 k = at * PIECE;
    if (unit >= HIDDEN) return p;
    const element *row = l.r + (i64)(g * HIDDEN + unit) * l.pitch;
    if (l.is_whole && k + PIECE <= SIZE) {
        p.bits = *(const u32x4 *)(row + k);
    } else {
#pragma unroll
        for (int i = 0; i < PIECE; i++)
            if (k + i < SIZE) p.at[i] = row[(k + i) * l.step];
    }
    return p;
}

/* part += piece `at` of the vectors at h times w, a piece of each gate of [FIRST, END). */
template <int SIZE, int FIRST, int END>
DEVICE void multiply(const piece (&w)[GATES], const acc *h, i32 at, acc (&part)[SUMS][BATCH][GATES])
{
#pragma unroll
    for (int b = 0; b < BATCH; b++)
#pragma unroll
        for (int q = 0; q < QUADS; q++) {
            const quad x = *(const quad *)(h + b * cut<SIZE>::ROOM + (q * cut<SIZE>::EACH * LANES + at) * QUAD);
#pragma unroll
            for (int i = 0; i < QUAD; i++)
#pragma unroll
                for (int g = FIRST; g < END; g++) part[i % SUMS][b][g] += widen(w[g].at[q * QUAD + i]) * x.at[i];
        }
}

/* sum += the thread's part of the rows of gates [FIRST, END) by the vectors at h. IN_REGISTERS and IN_SHARED of its
 * pieces are held and kept. */
template <int SIZE, int FIRST, int END, int IN_REGISTERS, int IN_SHARED>
DEVICE void products(const layer &l, i32 unit, piece (&held)[HELD + 1][GATES], const u32x4 *kept, const acc *h,
                     acc (&sum)[BATCH][GATES])
{
    const i32 lane = threadIdx.x % LANES;
    acc part[SUMS][BATCH][GATES] = {};
#pragma unroll
    for (int c = 0; c < IN_REGISTERS; c++) {
        if (!WIDENED)
#pragma unroll
            for (int g = FIRST; g < END; g++) renew(held[c][g]);
        multiply<SIZE, FIRST, END>(held[c], h, c * LANES + lane, part);
    }
#pragma unroll 2
    for (int c = IN_REGISTERS; c < IN_REGISTERS + IN_SHARED; c++) {
        piece w[GATES];
#pragma unroll
        for (int g = FIRST; g < END; g++) w[g].bits = kept[((c - IN_REGISTERS) * GATES + g) * BLOCK + threadIdx.x];
        multiply<SIZE, FIRST, END>(w, h, c * LANES + lane, part);
    }
#pragma unroll 2
    for (int c = IN_REGISTERS + IN_SHARED; c < cut<SIZE>::EACH; c++) {
        piece w[GATES];
#pragma unroll
        for (int g = FIRST; g < END; g++) w[g] = piece_of<SIZE>(l, unit, g, c * LANES + lane);
        multiply<SIZE, FIRST, END>(w, h, c * LANES + lane, part);
    }
#pragma unroll
    for (int b = 0; b < BATCH; b++)
#pragma unroll
        for (int g = FIRST; g < END; g++) {
#pragma unroll
            for (int k = 0; k < SUMS; k++) sum[b][g] += part[k][b][g];
        }
}

/* Adds up over the lanes of a unit, from the distance M on, where each lane has N sequences and OF gates from FIRST. Each
 * ends with its SEQUENCES sequences, and of those with LEFT gates, in front. */
template <int M, int N, int FIRST, int OF, int LEFT> DEVICE void add_up(acc (&sum)[BATCH][GATES])
{
    if constexpr (M > 0) {
        enum { SPLITS = N > 1, HALVES = !SPLITS && OF > LEFT, B = SPLITS ? N / 2 : N, G = HALVES ? OF / 2 : OF };
        const bool is_upper = lane_id() & M;
#pragma unroll
        for (int b = 0; b < B; b++)
#pragma unroll
            for (int g = FIRST; g < FIRST + G; g++) {
                acc &lower = sum[b][g], upper = SPLITS ? sum[b + B][g] : HALVES ? sum[b][g + G] : lower;
                const acc give = is_upper ? lower : upper;
                lower = (is_upper ? upper : lower) + exchange(give, M);
            }
        add_up<M / 2, B, FIRST, G, LEFT>(sum);
    }
}

/* The gates of a sequence, of which the lanes that share it have OWN each. */
DEVICE void gather(const acc (&own)[GATES], acc (&all)[GATES])
{
#pragma unroll
    for (int g = 0; g < GATES; g++) {
        if (SPREAD == 1) {
            all[g] = own[g];
        } else {
            const u32 each = OTHERS / SPREAD, lane = lane_id() & ~(OTHERS - 1u);
            all[g] = from_lane(own[g % OWN], lane + g / OWN * each);
        }
    }
}

/* Where there is a cluster, a barrier waits for each state: the even ones, the odd ones, and gru's reset state. */
enum { TO_EVEN, TO_ODD, TO_RESET, MEETINGS };
DEVICE void begin(u32 bars)
{
#if MEETS
    if (threadIdx.x == 0)
        for (u32 i = 0; i < MEETINGS; i++) barrier_init(bars + 8 * i, 1);
    barrier_init_fence();
    cluster_sync();
#else
    sync_block();
#endif
}
/* Says how many bytes a state has. Some of them may have come. */
DEVICE void expect(u32 bar)
{
#if MEETS
    if (threadIdx.x == 0) barrier_expect(bar, BATCH * HIDDEN * sizeof(acc));
#endif
}
/* Writes v to the same place in every block. OTHERS lanes have the same v and share the work. */
DEVICE void hand_out(acc *to, acc v, u32 bar, u32 who)
{
#if MEETS
#pragma unroll
    for (u32 k = 0; k < CLUSTER; k += OTHERS) {
        const u32 rank = k + who;
        if (rank < CLUSTER) send_async(cluster_address(shared_address(to), rank), v, cluster_address(bar, rank));
    }
#else
    if (!who) *to = v;
#endif
}
/* Waits for a state. use: how often the barrier was waited for before. */
DEVICE void wait_for(u32 bar, u32 use)
{
#if MEETS
    barrier_wait(bar, use & 1);
    sync_warp();
#else
    sync_block();
#endif
}

/* The steps of sequence b. */
DEVICE i32 length_of(const rnn_args &a, i32 b)
{
    if (b >= a.batch) return 0;
    if (!a.lengths) return a.steps;
    const i64 n = LENGTHS_WIDE ? ((const i64 *)a.lengths)[b * a.sl] : ((const i32 *)a.lengths)[b * a.sl];
    return n < 0 ? 0 : n > a.steps ? a.steps : (i32)n;
}

/* A sequence that a lane finishes, and its part of the inputs' product. */
struct sequence {
    i32 b, length;
    const acc *x;                       /* the first of the lane's own gates at step 0, unit 0 */
    acc coming[GATES];                  /* of the step that is next */
};
DEVICE i32 time_of(const rnn_args &a, bool is_reverse, i32 length, i32 step) { return is_reverse ? length - 1 - step : step; }
DEVICE void fetch(const rnn_args &a, sequence &s, bool is_reverse, i32 step, i32 unit, acc (&to)[GATES])
{
    const acc *x = s.x + (i64)time_of(a, is_reverse, s.length, step) * a.batch * a.directions * (GATES * HIDDEN) + unit;
#pragma unroll
    for (int g = 0; g < OWN; g++) to[g] = step < s.length && unit < HIDDEN ? x[g * HIDDEN] : 0;
}

KERNEL void __launch_bounds__(BLOCK) rnn_steps(const __grid_constant__ rnn_args a)
{
    const i32 task = blockIdx.x / CLUSTER, rank = blockIdx.x % CLUSTER;
    const i32 direction = task / a.slices, slice = task % a.slices * BATCH;
    const i32 lane = threadIdx.x % LANES, first = rank * SPAN, end = smaller(first + SPAN, HIDDEN);
    u32x4 *kept = (u32x4 *)shared_base();                       /* [KEPT][GATES][BLOCK] */
    acc *state = (acc *)(kept + KEPT * GATES * BLOCK);          /* [2][BATCH][STATE] */
    acc *reset = state + 2 * BATCH * STATE;                     /* [BATCH][STATE]: gru's r * h */
    acc *coming = reset + AGAIN * BATCH * STATE;                /* [BATCH][X_ROOM]: x, where -DALONE */
    u64 *const meetings = (u64 *)(coming + BATCH * X_ROOM);
    cell_number *cell = (cell_number *)(meetings + MEETINGS);   /* [SPAN][BATCH]: lstm's cell, gru's update gate */
    const u32 bars = shared_address(meetings);
    const layer l = layer_of(a.r, direction, a.sr), w = layer_of(a.w, direction, a.sw);
    if (!R_CONST) grid_wait();
    piece held[HELD + 1][GATES];
    const i32 unit_of_thread = first + (i32)threadIdx.x / LANES;
    if (HELD + KEPT) {
        const i32 unit = unit_of_thread < end ? unit_of_thread : HIDDEN;
#pragma unroll
        for (int g = 0; g < GATES; g++) {
#pragma unroll
            for (int c = 0; c < HELD; c++) held[c][g] = piece_of<HIDDEN>(l, unit, g, c * LANES + lane);
            for (int c = 0; c < KEPT; c++)
                kept[(c * GATES + g) * BLOCK + threadIdx.x] = piece_of<HIDDEN>(l, unit, g, (HELD + c) * LANES + lane).bits;
        }
    }
    if (R_CONST) grid_wait();
    grid_trigger();
    const bool is_reverse = direction == 1 || a.first_is_reverse;
    const rnn_act *act = a.act[direction];
    i32 longest = 0;
    for (int b = 0; b < BATCH; b++) longest = larger(longest, length_of(a, slice + b));
    for (i32 i = threadIdx.x; i < BATCH * ((2 + AGAIN) * STATE + X_ROOM); i += BLOCK) state[i] = 0;
    sync_block();
    if (ALONE && longest > 0)
        for (i32 i = threadIdx.x; i < BATCH * INPUTS; i += BLOCK) {
            const i32 b = slice + i / INPUTS, k = i % INPUTS;
            if (b < a.batch) coming[i / INPUTS * X_ROOM + cut<INPUTS>::place(k)] = widen(x_row(a, b)[k * a.sx[2]]);
        }
    for (i32 i = threadIdx.x; i < BATCH * HIDDEN; i += BLOCK) {
        const i32 b = slice + i / HIDDEN, j = i % HIDDEN;
        if (b < a.batch && a.h0)
            state[i / HIDDEN * STATE + place(j)] = at_of(a.h0, direction * a.sh[0] + b * a.sh[1] + j * a.sh[2]);
    }
    for (i32 i = threadIdx.x; i < BATCH * SPAN; i += BLOCK) {
        const i32 b = slice + i % BATCH, j = first + i / BATCH;
        const bool is_there = b < a.batch && j < end && CELL == RNN_CELL_LSTM && a.c0;
        set(cell[i], is_there ? at_of(a.c0, direction * a.sc[0] + b * a.sc[1] + j * a.sc[2]) : 0);
    }
    begin(bars);
    /* Which of a unit's sequences and gates this lane finishes: the upper bits of the lane choose. */
    const i32 own_sequence = lane / OTHERS * SEQUENCES, own_gate = lane % OTHERS / (OTHERS / SPREAD) * OWN;
    const u32 who = lane % OTHERS;
    sequence s[SEQUENCES];
#pragma unroll
    for (int i = 0; i < SEQUENCES; i++) {
        s[i].b = slice + own_sequence + i;
        s[i].length = length_of(a, s[i].b);
        s[i].x = (const acc *)a.part + ((i64)s[i].b * a.directions + direction) * (GATES * HIDDEN) + own_gate * HIDDEN;
        if (TURNS == 1 && !ALONE) fetch(a, s[i], is_reverse, 0, unit_of_thread, s[i].coming);
    }
    for (i32 step = 0; step < a.steps; step++) {
        const acc *now = state + step % 2 * BATCH * STATE;
        acc *next = state + (step + 1) % 2 * BATCH * STATE;
        const u32 ahead = bars + 8 * ((step + 1) % 2);
        if (step && MEETS) wait_for(bars + 8 * (step % 2), (step - 1) / 2);
        expect(ahead);
        acc x[SEQUENCES][GATES];
        if (TURNS == 1 && !ALONE) {
#pragma unroll
            for (int i = 0; i < SEQUENCES; i++) {
#pragma unroll
                for (int g = 0; g < OWN; g++) x[i][g] = s[i].coming[g];
                fetch(a, s[i], is_reverse, step + 1, unit_of_thread, s[i].coming);
            }
        }
        const bool is_live = step < longest;
        if (AGAIN) {
            /* The update gate is kept; the reset state goes to all, and is multiplied next. */
            expect(bars + 8 * TO_RESET);
            for (i32 u = threadIdx.x / LANES; u - (i32)threadIdx.x / LANES < SPAN; u += AT_ONCE) {
                const i32 j = first + u;
                acc sum[BATCH][GATES] = {};
                if (is_live) products<HIDDEN, 0, 2, HELD, KEPT>(l, j < end ? j : HIDDEN, held, kept, now, sum);
                add_up<LANES / 2, BATCH, 0, 2, 2>(sum);
#pragma unroll
                for (int i = 0; i < SEQUENCES; i++) {
                    const i32 at = own_sequence + i;
                    acc r = 0;
                    if (TURNS > 1) fetch(a, s[i], is_reverse, step, j, x[i]);
                    if (j >= end) continue;
                    if (step < s[i].length) {
                        const acc z = gate(a, act[0], false, x[i][0] + sum[i][0]);
                        if (!who) set(cell[u * BATCH + at], z);
                        r = gate(a, act[0], false, x[i][1] + sum[i][1]) * now[at * STATE + place(j)];
                    }
                    hand_out(&reset[at * STATE + place(j)], r, bars + 8 * TO_RESET, who);
                }
            }
            wait_for(bars + 8 * TO_RESET, step);
        }
        for (i32 u = threadIdx.x / LANES; u - (i32)threadIdx.x / LANES < SPAN; u += AT_ONCE) {
            const i32 j = first + u;
            acc sum[BATCH][GATES] = {};
            if (is_live) products<HIDDEN, AGAIN ? 2 : 0, GATES, HELD, KEPT>(l, j < end ? j : HIDDEN, held, kept, AGAIN ? reset : now, sum);
            acc of_x[BATCH][GATES] = {};        /* a gru scales what the state makes of its last gate */
            if constexpr (ALONE) {
                products<INPUTS, 0, GATES, 0, 0>(w, j < end ? j : HIDDEN, held, kept, coming, CELL == RNN_CELL_GRU ? of_x : sum);
                if (CELL == RNN_CELL_GRU) add_up<LANES / 2, BATCH, 0, GATES, OWN>(of_x);
            }
            cell_number kept_cell[SEQUENCES];        /* read before the lanes meet below: one of them writes the next */
#pragma unroll
            for (int i = 0; i < SEQUENCES; i++) {
                set(kept_cell[i], 0);
                if (j < end) kept_cell[i] = cell[u * BATCH + own_sequence + i];
            }
            sync_warp();
            add_up<LANES / 2, BATCH, AGAIN ? 2 : 0, AGAIN ? 1 : GATES, AGAIN ? 1 : OWN>(sum);
#pragma unroll
            for (int i = 0; i < SEQUENCES; i++) {
                const i32 at = own_sequence + i;
                acc (&own)[GATES] = x[i], all[GATES];
                if (ALONE)
#pragma unroll
                    for (int g = 0; g < OWN; g++) own[g] = of_x[i][g] + (j < end ? bias_of(a, direction, (own_gate + g) * HIDDEN + j) : 0);
                else if (TURNS > 1) fetch(a, s[i], is_reverse, step, j, own);
                if (CELL == RNN_CELL_LSTM && !PEEPHOLE) {
#pragma unroll
                    for (int g = 0; g < OWN; g++) {
                        const bool is_fresh = own_gate + g == 3;
                        own[g] = gate(a, act[is_fresh], is_fresh, own[g] + sum[i][g]);
                    }
                }
                gather(own, all);
                if (j >= end) continue;
                const i64 y = direction * a.sy[1] + s[i].b * a.sy[2] + j * a.sy[3];
                const acc h = now[at * STATE + place(j)];
                if (step >= s[i].length) {
                    if (a.y && !who && s[i].b < a.batch) narrow(0, ((element *)a.y)[step * a.sy[0] + y]);
                    hand_out(&next[at * STATE + place(j)], h, ahead, who);
                    continue;
                }
                acc v;
                if (CELL == RNN_CELL_LSTM) {
                    acc in = all[0], out = all[1], forget = all[2], fresh = all[3], po = 0;
                    if (PEEPHOLE) {
                        const i64 p = direction * a.sp[0] + j * a.sp[1];
                        const acc pi = at_of(a.peephole, p), pf = at_of(a.peephole, p + 2 * HIDDEN * a.sp[1]);
                        const acc c = value_of(kept_cell[i]);
                        po = at_of(a.peephole, p + HIDDEN * a.sp[1]);
                        in = gate(a, act[0], false, in + sum[i][0] + pi * c);
                        forget = gate(a, act[0], false, forget + sum[i][2] + pf * c);
                        fresh = gate(a, act[1], true, fresh + sum[i][3]);
                    }
                    if (JOINT) forget = 1 - in;
                    const cell_number after = carried(forget, kept_cell[i], in, fresh);
                    if (PEEPHOLE) out = gate(a, act[0], false, out + sum[i][1] + po * value_of(after));
                    if (!who) cell[u * BATCH + at] = after;
                    v = out * activation(act[2], true, value_of(after));
                } else if (CELL == RNN_CELL_GRU) {
                    acc z = value_of(kept_cell[i]), turned = sum[i][2];
                    if (LINEAR) {
                        z = gate(a, act[0], false, all[0] + sum[i][0]);
                        const acc r = gate(a, act[0], false, all[1] + sum[i][1]);
                        if (a.bias) turned += at_of(a.bias, direction * a.sb[0] + ((GATES + 2) * HIDDEN + j) * a.sb[1]);
                        turned *= r;
                    }
                    v = (1 - z) * gate(a, act[1], true, all[2] + turned) + z * h;
                } else {
                    v = gate(a, act[0], true, all[0] + sum[i][0]);
                }
                if (a.y && !who) narrow(v, ((element *)a.y)[time_of(a, is_reverse, s[i].length, step) * a.sy[0] + y]);
                hand_out(&next[at * STATE + place(j)], v, ahead, who);
            }
        }
        if (!MEETS) sync_block();
    }
    if (MEETS && a.steps) wait_for(bars + 8 * (a.steps % 2), (a.steps - 1) / 2);
    sync_block();
    const acc *last = state + a.steps % 2 * BATCH * STATE;
    for (i32 i = threadIdx.x; i < BATCH * SPAN; i += BLOCK) {
        const i32 at = i % BATCH, b = slice + at, j = first + i / BATCH;
        if (b >= a.batch || j >= end) continue;
        const i64 at_h = direction * a.syh[0] + b * a.syh[1] + j * a.syh[2];
        const i64 at_c = direction * a.syc[0] + b * a.syc[1] + j * a.syc[2];
        if (a.y_h) narrow(last[at * STATE + place(j)], ((element *)a.y_h)[at_h]);
        if (a.y_c) narrow(value_of(cell[i]), ((element *)a.y_c)[at_c]);
    }
#if MEETS
    cluster_sync();
#endif
}
