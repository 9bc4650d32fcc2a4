// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Any bytes as an Ethernet frame: nothing is read or written outside of it,
 * what is there fits in, and checksums that were written are right.
 */
#include <assert.h>
#include <stdlib.h>

#include "rnic/internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rnic_hash hash = {.fields = RNIC_HASH_FIELDS};
	struct rnic_frame frame;
	uint8_t *copy;

	if (size > RNIC_MAX_FRAME)
		return 0;
	copy = malloc(size ? size : 1);
	if (!copy)
		return 0;
	memcpy(copy, data, size);
	rnic_frame_parse(&frame, copy, size);
	assert(frame.l3 <= size && frame.l4 <= size);
	if (size < RNIC_MIN_FRAME)
		assert(!frame.key.outer.layers);
	memset(hash.key, 0x5a, sizeof(hash.key));
	rnic_frame_hash(&frame, &hash);
	hash.fields &= ~RNIC_HASH_INNER;
	rnic_frame_hash(&frame, &hash);
	rnic_frame_checksums_ok(&frame);
	rnic_frame_write_checksums(&frame);
	rnic_frame_parse(&frame, copy, size);
	rnic_frame_checksums_ok(&frame);
	free(copy);
	return 0;
}
