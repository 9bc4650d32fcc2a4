/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The files below ports/N/counters and ports/N/hw_counters: which counter of
 * the RNIC each one shows.  Needs nothing but the core's header, so that the
 * preload library can refresh what the daemon laid out.
 */
#ifndef SFNIC_PORT_COUNTERS_H
#define SFNIC_PORT_COUNTERS_H

#include <stddef.h>
#include <stdint.h>
#include "rnic/rnic.h"

struct port_counter {
	const char *dir; /* "counters" or "hw_counters" */
	const char *file;
	uint16_t field; /* offset in struct rnic_counters */
	uint16_t unit;	/* divides the value; 0: the file always says 0 */
};

extern const struct port_counter port_counters[];
extern const size_t port_counters_len;

/* NULL if there is none.  @file ends at @len. */
const struct port_counter *port_counter_find(const char *dir, size_t dir_len,
					     const char *file, size_t len);
uint64_t port_counter_value(const struct port_counter *c,
			    const struct rnic_counters *values);
/* @value in decimal and a newline; returns the length.  Signal safe. */
size_t port_counter_format(char buf[24], uint64_t value);

#endif
