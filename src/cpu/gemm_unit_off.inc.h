/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_unit_off.inc.h - takes back what gemm_end.inc.h defines and is given. */
#undef UNIT
#undef UNIT_IS_INTEGER
#undef UNIT_IS_NARROW
#undef UNIT_STORE_NARROW
#undef UNIT_PASTE_
#undef UNIT_PASTE
#undef UNIT_NAME
#undef UNIT_SUM
#undef UNIT_ZERO
