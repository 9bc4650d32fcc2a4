/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef SF_PABI_COMPILER_H
#define SF_PABI_COMPILER_H

#ifndef likely
#define likely(x) __builtin_expect(!!(x), 1)
#endif
#ifndef unlikely
#define unlikely(x) __builtin_expect(!!(x), 0)
#endif

#endif
