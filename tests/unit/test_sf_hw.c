// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The hardware contract: encodings, laps, the data area, and the worked
 * examples of docs/hardware.md, byte for byte.  `test_sf_hw --print` prints
 * those as they belong into that file.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "scalefabric/sf_hw.h"

/* ---- commit word ---------------------------------------------------- */

static void commit_word_gives_back_what_was_put_in(void **state)
{
	static const uint32_t flags[] = {0, 1, 0x80, 0x00ff, 0xffff};
	uint32_t op, n, f, log_depth;

	(void)state;
	for (op = 0; op < 256; op += 15)
		for (n = 0; n < 256; n += 17)
			for (f = 0; f < 5; f++)
				for (log_depth = 0; log_depth <= 15;
				     log_depth += 5) {
					uint64_t index = 0x123456789abULL;
					uint64_t c =
						sf_commit(op, n, flags[f],
							  index, log_depth);

					assert_int_equal(sf_commit_opcode(c),
							 op);
					assert_int_equal(sf_commit_nsge(c), n);
					assert_int_equal(sf_commit_flags(c),
							 flags[f]);
					assert_int_equal(sf_commit_lap(c),
							 (uint32_t)(index >>
								    log_depth));
				}
}

static void a_zeroed_ring_is_empty(void **state)
{
	uint32_t log_depth;
	uint64_t i;

	(void)state;
	for (log_depth = 0; log_depth <= SF_MAX_LOG_DEPTH; log_depth++) {
		uint64_t depth = 1ULL << log_depth;

		/* The device looks for the lap of the first indices. */
		for (i = depth; i < 3 * depth; i += depth / 2 + 1)
			assert_int_not_equal(sf_lap(i, log_depth),
					     sf_commit_lap(0));
	}
}

static void a_slot_of_the_lap_before_is_not_committed(void **state)
{
	uint64_t depth = 1 << 4, i;

	(void)state;
	for (i = depth; i < 4 * depth; i++) {
		uint64_t old = sf_commit(SF_OP_SEND, 1, 0, i, 4);

		assert_int_equal(sf_commit_lap(old), sf_lap(i, 4));
		assert_int_not_equal(sf_commit_lap(old), sf_lap(i + depth, 4));
	}
}

static void lap_wraps_at_32_bits(void **state)
{
	uint64_t index = 1ULL << (32 + 7);

	(void)state;
	assert_int_equal(sf_lap(index - 1, 7), 0xffffffff);
	assert_int_equal(sf_lap(index, 7), 0);
	assert_int_equal(sf_lap(index + 128, 7), 1);
}

/* ---- data area ------------------------------------------------------ */

static void data_is_contiguous_without_operands(void **state)
{
	uint32_t pos;

	(void)state;
	for (pos = 0; pos < 480; pos++)
		assert_int_equal(sf_slot_data_offset(pos, 0), 0x20 + pos);
}

static void data_jumps_over_operands(void **state)
{
	uint32_t pos;

	(void)state;
	for (pos = 0; pos < 464; pos++)
		assert_int_equal(sf_slot_data_offset(pos, 1),
				 pos < 16 ? 0x20 + pos : 0x30 + pos);
}

static void the_last_byte_of_capacity_is_the_last_byte_of_the_slot(void **state)
{
	uint32_t log;
	int args;

	(void)state;
	for (log = SF_SLOT_LOG_MIN; log <= SF_SLOT_LOG_MAX; log++)
		for (args = 0; args < 2; args++) {
			uint32_t stride = 1u << log;
			uint32_t n = sf_slot_capacity(stride, args);

			if (stride == 64 && args)
				assert_int_equal(
					sf_slot_data_offset(n - 1, args), 0x2f);
			else
				assert_int_equal(sf_slot_data_offset(n - 1,
								     args),
						 stride - 1);
		}
}

static void limits_are_those_of_the_largest_slot(void **state)
{
	(void)state;
	assert_int_equal(sf_slot_capacity(512, 0), SF_MAX_INLINE);
	assert_int_equal(sf_slot_capacity(512, 0) / 16, SF_MAX_SEND_SGE);
	assert_int_equal((512 - sizeof(struct sf_rq_desc)) / 16,
			 SF_MAX_RECV_SGE);
}

/* ---- CQE word ------------------------------------------------------- */

static void cqe_word_gives_back_what_was_put_in(void **state)
{
	uint32_t op, status;

	(void)state;
	for (op = 0; op < 256; op += 5)
		for (status = 0; status < 256; status += 7) {
			uint64_t w = sf_cqe_word(op, status, 0xa5c3, 0xabcdef,
						 0x7f5 << 6, 6);

			assert_int_equal(sf_cqe_opcode(w), op);
			assert_int_equal(sf_cqe_status(w), status);
			assert_int_equal(sf_cqe_flags(w), 0xa5c3);
			assert_int_equal(sf_cqe_syndrome(w), 0xabcdef);
			assert_int_equal(sf_cqe_lap(w), 0xf5);
		}
}

static void a_long_syndrome_does_not_touch_the_lap(void **state)
{
	(void)state;
	assert_int_equal(sf_cqe_lap(sf_cqe_word(0, 0, 0, 0xffffffff, 0, 4)), 0);
}

static void a_cqe_slot_reads_as_unwritten_for_255_laps(void **state)
{
	uint64_t w = sf_cqe_word(SF_CQE_RECV, 0, 0, 0, 1 << 4, 4);
	uint64_t lap;

	(void)state;
	for (lap = 2; lap < 257; lap++)
		assert_int_not_equal(sf_cqe_lap(w), sf_lap(lap << 4, 4) & 0xff);
}

/* ---- lines, keys ---------------------------------------------------- */

static void an_error_ends_every_wait(void **state)
{
	uint64_t word = SF_LINE_ERROR | 5;

	(void)state;
	assert_true(word >= SF_LINE_INDEX_MASK);
	assert_int_equal(word & SF_LINE_INDEX_MASK, 5);
}

static void key_is_index_and_tag(void **state)
{
	(void)state;
	assert_int_equal(SF_KEY_INDEX(0x12345678), 0x123456);
	assert_int_equal(SF_KEY_TAG(0x12345678), 0x78);
}

static void status_values_are_those_of_verbs(void **state)
{
	(void)state;
	assert_int_equal(SF_ST_WR_FLUSH_ERR, 5);
	assert_int_equal(SF_ST_REM_ACCESS_ERR, 10);
	assert_int_equal(SF_ST_RETRY_EXC_ERR, 12);
	assert_int_equal(SF_ST_RNR_RETRY_EXC_ERR, 13);
	assert_int_equal(SF_ST_GENERAL_ERR, 21);
}

/* ---- worked examples ------------------------------------------------ */

static size_t example_write(uint8_t *buf)
{
	struct sf_wqe *w = (struct sf_wqe *)buf;

	w->remote_addr = 0x7f00aa004000;
	w->rkey = 0x00001203;
	w->sge0 = (struct sf_sge){
		.addr = 0x7f55bb001000, .length = 4096, .lkey = 0x00000501};
	w->commit = sf_commit(SF_OP_WRITE, 1, SF_WQE_SIGNALED, 16, 4);
	return 64;
}

/* Puts @len bytes into the data area. */
static void put_data(uint8_t *slot, const char *text, size_t len, int args)
{
	size_t i;

	for (i = 0; i < len; i++)
		slot[sf_slot_data_offset(i, args)] = text[i];
}

static size_t example_inline_send(uint8_t *buf)
{
	struct sf_wqe *w = (struct sf_wqe *)buf;

	w->inline_len = 20;
	put_data(buf, "scaleFabric says hi!", 20, 0);
	w->commit = sf_commit(SF_OP_SEND, 0, SF_WQE_INLINE | SF_WQE_SOLICITED,
			      37, 4);
	return 64;
}

static size_t example_signal(uint8_t *buf)
{
	struct sf_wqe *w = (struct sf_wqe *)buf;
	struct sf_sge second = {
		.addr = 0x7f55bb100000, .length = 1024, .lkey = 0x00000501};

	w->remote_addr = 0x7f00aa008000;
	w->rkey = 0x00001203;
	w->sge0 = (struct sf_sge){
		.addr = 0x7f55bb001000, .length = 512, .lkey = 0x00000501};
	memcpy(buf + sf_slot_data_offset(16, 1), &second, sizeof(second));
	w->arg0 = 0x7f00aa000040;
	w->arg1 = 0x00001203 | (uint64_t)1 << 32;
	w->commit = sf_commit(SF_OP_WRITE, 2, SF_WQE_SIGNAL, 300, 7);
	return 128;
}

static size_t example_inline_signal(uint8_t *buf)
{
	struct sf_wqe *w = (struct sf_wqe *)buf;

	w->inline_len = 24;
	w->remote_addr = 0x7f00aa008000;
	w->rkey = 0x00001203;
	put_data(buf, "abcdefghijklmnopqrstuvwx", 24, 1);
	w->arg0 = 0x7f00aa000040;
	w->arg1 = 0x00001203 | (uint64_t)(uint32_t)-1 << 32;
	w->commit = sf_commit(SF_OP_WRITE, 0, SF_WQE_INLINE | SF_WQE_SIGNAL,
			      301, 7);
	return 128;
}

static size_t example_fetch_add(uint8_t *buf)
{
	struct sf_wqe *w = (struct sf_wqe *)buf;

	w->remote_addr = 0x7f00aa000080;
	w->rkey = 0x00001203;
	w->sge0 = (struct sf_sge){
		.addr = 0x7f55bb000200, .length = 8, .lkey = 0x00000501};
	w->arg0 = 5;
	w->commit = sf_commit(SF_OP_ATOMIC_FADD, 1, SF_WQE_FENCE, 17, 4);
	return 64;
}

static size_t example_bind(uint8_t *buf)
{
	struct sf_wqe *w = (struct sf_wqe *)buf;
	struct sf_bind bind = {.length = 64, .access = SF_ACCESS_REMOTE_WRITE};

	w->remote_addr = 0x7f55bb001000;
	w->rkey = 0x00002077;
	w->imm = 0x00000501;
	memcpy(&w->sge0, &bind, sizeof(bind));
	w->commit = sf_commit(SF_OP_BIND_MW, 0, SF_WQE_SIGNALED, 18, 4);
	return 64;
}

static size_t example_line_new(uint8_t *buf)
{
	struct sf_send_line *l = (struct sf_send_line *)buf;

	l->word = 16;
	l->failed = SF_LINE_NO_FAILED;
	return 24;
}

static size_t example_line_error(uint8_t *buf)
{
	struct sf_send_line *l = (struct sf_send_line *)buf;

	l->word = SF_LINE_ERROR | 20;
	l->failed = 20;
	l->status = SF_ST_REM_ACCESS_ERR;
	l->syndrome = SF_SYN_PEER;
	return 24;
}

static size_t example_cqe_recv(uint8_t *buf)
{
	struct sf_cqe *c = (struct sf_cqe *)buf;

	memcpy(c->data, "ping", 4);
	c->wr = 7;
	c->byte_len = 4;
	c->imm = 0xddccbbaa;
	c->qpn = 0x000102;
	c->src_qpn = 0x000203;
	c->slid = 1;
	c->word = sf_cqe_word(SF_CQE_RECV, SF_ST_SUCCESS,
			      SF_CQE_IMM | SF_CQE_INLINE, SF_SYN_NONE, 70, 5);
	return 64;
}

static size_t example_cqe_error(uint8_t *buf)
{
	struct sf_cqe *c = (struct sf_cqe *)buf;

	c->wr = 20;
	c->byte_len = 4096;
	c->qpn = 0x000102;
	c->src_qpn = 0x000203;
	c->word = sf_cqe_word(SF_OP_WRITE, SF_ST_REM_ACCESS_ERR, 0, SF_SYN_PEER,
			      71, 5);
	return 64;
}

static size_t example_ctrl(uint8_t *buf)
{
	struct sf_cq_ctrl *c = (struct sf_cq_ctrl *)buf;

	c->consumer = 72;
	c->arm = (uint64_t)SF_CQ_ARM_ANY << SF_CQ_ARM_SHIFT | 72;
	return 16;
}

static size_t example_recv(uint8_t *buf)
{
	struct sf_rq_desc *d = (struct sf_rq_desc *)buf;
	struct sf_sge sge = {
		.addr = 0x7f55bb002000, .length = 2048, .lkey = 0x00000501};

	d->cookie = 7;
	d->n_sge = 1;
	memcpy(buf + sizeof(*d), &sge, sizeof(sge));
	return 32;
}

static const struct {
	const char *name;
	size_t (*build)(uint8_t *buf);
} examples[] = {
	{"write", example_write},
	{"inline-send", example_inline_send},
	{"signal", example_signal},
	{"inline-signal", example_inline_signal},
	{"fetch-add", example_fetch_add},
	{"bind", example_bind},
	{"line-new", example_line_new},
	{"line-error", example_line_error},
	{"cqe-recv", example_cqe_recv},
	{"cqe-error", example_cqe_error},
	{"ctrl", example_ctrl},
	{"recv", example_recv},
};
#define EXAMPLES (sizeof(examples) / sizeof(examples[0]))

static void example_text(size_t n, char *text)
{
	_Alignas(64) uint8_t buf[512] = {0};
	size_t len = examples[n].build(buf), i;

	for (i = 0; i < len; i++) {
		if (i % 16 == 0)
			text += sprintf(text, "%s%02zx ", i ? "\n" : "", i);
		if (i % 8 == 0)
			*text++ = ' ';
		text += sprintf(text, "%02x", buf[i]);
		if (i % 16 != 15 && i + 1 < len)
			*text++ = ' ';
	}
	*text++ = '\n';
	*text = 0;
}

/* The block of docs/hardware.md that follows the comment <!-- name -->. */
static int doc_has(const char *doc, const char *name, const char *text)
{
	char head[64];
	const char *at;

	snprintf(head, sizeof(head), "<!-- %s -->\n```\n", name);
	at = strstr(doc, head);
	return at && !strncmp(at + strlen(head), text, strlen(text)) &&
	       !strncmp(at + strlen(head) + strlen(text), "```", 3);
}

static void the_manual_shows_these_bytes(void **state)
{
	static char doc[1 << 18];
	FILE *f = fopen(SF_SOURCE_DIR "/docs/hardware.md", "r");
	size_t n;

	(void)state;
	assert_non_null(f);
	n = fread(doc, 1, sizeof(doc) - 1, f);
	fclose(f);
	assert_in_range(n, 1, sizeof(doc) - 2);
	for (n = 0; n < EXAMPLES; n++) {
		char text[2048];

		example_text(n, text);
		if (!doc_has(doc, examples[n].name, text))
			fail_msg("docs/hardware.md, example %s, should be\n%s",
				 examples[n].name, text);
	}
}

static int print_examples(void)
{
	char text[2048];
	size_t n;

	for (n = 0; n < EXAMPLES; n++) {
		example_text(n, text);
		printf("<!-- %s -->\n```\n%s```\n\n", examples[n].name, text);
	}
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(commit_word_gives_back_what_was_put_in),
		cmocka_unit_test(a_zeroed_ring_is_empty),
		cmocka_unit_test(a_slot_of_the_lap_before_is_not_committed),
		cmocka_unit_test(lap_wraps_at_32_bits),
		cmocka_unit_test(data_is_contiguous_without_operands),
		cmocka_unit_test(data_jumps_over_operands),
		cmocka_unit_test(
			the_last_byte_of_capacity_is_the_last_byte_of_the_slot),
		cmocka_unit_test(limits_are_those_of_the_largest_slot),
		cmocka_unit_test(cqe_word_gives_back_what_was_put_in),
		cmocka_unit_test(a_long_syndrome_does_not_touch_the_lap),
		cmocka_unit_test(a_cqe_slot_reads_as_unwritten_for_255_laps),
		cmocka_unit_test(an_error_ends_every_wait),
		cmocka_unit_test(key_is_index_and_tag),
		cmocka_unit_test(status_values_are_those_of_verbs),
		cmocka_unit_test(the_manual_shows_these_bytes),
	};

	if (argc > 1 && !strcmp(argv[1], "--print"))
		return print_examples();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
