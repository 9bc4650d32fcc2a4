/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Counter files of a port.
 */
#include <string.h>

#include "softnic/port_counters.h"

#define FIELD(name) offsetof(struct rnic_counters, name)

/*
 * The names of counters/ are the kernel's, and so are the units: data counts in
 * words of 4 bytes.  What goes wrong on a physical link alone cannot go wrong
 * here.
 */
const struct port_counter port_counters[] = {
	{"counters", "port_xmit_data", FIELD(xmit_bytes), 4},
	{"counters", "port_rcv_data", FIELD(rcv_bytes), 4},
	{"counters", "port_xmit_packets", FIELD(xmit_packets), 1},
	{"counters", "port_rcv_packets", FIELD(rcv_packets), 1},
	{"counters", "unicast_xmit_packets", FIELD(xmit_packets), 1},
	{"counters", "unicast_rcv_packets", FIELD(rcv_packets), 1},
	{"counters", "multicast_xmit_packets", 0, 0},
	{"counters", "multicast_rcv_packets", 0, 0},
	{"counters", "excessive_buffer_overrun_errors", 0, 0},
	{"counters", "link_downed", 0, 0},
	{"counters", "link_error_recovery", 0, 0},
	{"counters", "local_link_integrity_errors", 0, 0},
	{"counters", "port_rcv_constraint_errors", 0, 0},
	{"counters", "port_rcv_errors", 0, 0},
	{"counters", "port_rcv_remote_physical_errors", 0, 0},
	{"counters", "port_rcv_switch_relay_errors", 0, 0},
	{"counters", "port_xmit_constraint_errors", 0, 0},
	{"counters", "port_xmit_discards", 0, 0},
	{"counters", "port_xmit_wait", 0, 0},
	{"counters", "symbol_error", 0, 0},
	{"counters", "VL15_dropped", 0, 0},
#define X(name) {"hw_counters", #name, FIELD(name), 1},
	RNIC_COUNTERS(X)
#undef X
};

const size_t port_counters_len =
	sizeof(port_counters) / sizeof(port_counters[0]);

static int is_word(const char *word, const char *text, size_t len)
{
	return !strncmp(word, text, len) && !word[len];
}

const struct port_counter *port_counter_find(const char *dir, size_t dir_len,
					     const char *file, size_t len)
{
	size_t i;

	for (i = 0; i < port_counters_len; i++)
		if (is_word(port_counters[i].dir, dir, dir_len) &&
		    is_word(port_counters[i].file, file, len))
			return &port_counters[i];
	return NULL;
}

uint64_t port_counter_value(const struct port_counter *c,
			    const struct rnic_counters *values)
{
	uint64_t v;

	if (!c->unit)
		return 0;
	memcpy(&v, (const char *)values + c->field, sizeof(v));
	return v / c->unit;
}

size_t port_counter_format(char buf[24], uint64_t value)
{
	char digits[20];
	size_t n = 0, i;

	do {
		digits[n++] = '0' + value % 10;
		value /= 10;
	} while (value);
	for (i = 0; i < n; i++)
		buf[i] = digits[n - 1 - i];
	buf[n] = '\n';
	return n + 1;
}
