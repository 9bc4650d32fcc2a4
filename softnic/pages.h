/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The arena's pages: who has which, first fit, given back to the system. */
#ifndef SFNIC_PAGES_H
#define SFNIC_PAGES_H

#include <stdint.h>

/* Pages of [start, end) of the memory file @fd are there to be had. */
int pages_init(int fd, uint64_t start, uint64_t end);
/* Zeroed; 0: none left. */
uint64_t pages_alloc(uint64_t len);
void pages_free(uint64_t off, uint64_t len);
uint64_t pages_used(void);

#endif
