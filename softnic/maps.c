/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <string.h>
#include <sys/sysmacros.h>
#include "softnic/maps.h"
#include "softnic/raw.h"

/* A number in @base, and one character after it. */
static uint64_t number(const char **p, const char *end, unsigned int base)
{
	uint64_t v = 0;

	for (; *p < end; ++*p) {
		unsigned int digit;
		char c = **p;

		if (c >= '0' && c <= '9')
			digit = (unsigned int)(c - '0');
		else if (base == 16 && c >= 'a' && c <= 'f')
			digit = (unsigned int)(c - 'a' + 10);
		else
			break;
		v = v * base + digit;
	}
	if (*p < end)
		++*p;
	return v;
}

/* "start-end rwxp offset major:minor inode   path" */
static void parse_line(const char *p, const char *end, struct mapping *m)
{
	unsigned int major, minor;

	m->start = number(&p, end, 16);
	m->end = number(&p, end, 16);
	m->readable = end - p > 4 && p[0] == 'r';
	m->writable = m->readable && p[1] == 'w';
	m->shared = end - p > 4 && p[3] == 's';
	p = end - p > 5 ? p + 5 : end;
	m->off = number(&p, end, 16);
	major = (unsigned int)number(&p, end, 16);
	minor = (unsigned int)number(&p, end, 16);
	m->dev = makedev(major, minor);
	m->ino = number(&p, end, 10);
	while (p < end && *p == ' ')
		p++;
	m->special = p < end && *p == '[' && memcmp(p, "[heap]", 6) &&
		     memcmp(p, "[anon", 5);
}

static void clip(struct mapping *m, uint64_t start, uint64_t end)
{
	if (m->start < start) {
		m->off += start - m->start;
		m->start = start;
	}
	if (m->end > end)
		m->end = end;
}

/* The file's position is left alone: others read it, too. */
static int maps_read_fd(int fd, uint64_t start, uint64_t end,
			struct mapping *maps, int max)
{
	char buf[8192];
	size_t have = 0;
	int n = 0;
	long got, at = 0;

	while (n < max &&
	       (got = raw_pread(fd, buf + have, sizeof(buf) - have, at)) > 0) {
		char *line = buf, *nl;

		at += got;
		have += (size_t)got;
		while (n < max &&
		       (nl = memchr(line, '\n', have - (size_t)(line - buf)))) {
			struct mapping m;

			parse_line(line, nl, &m);
			line = nl + 1;
			if (m.start >= end)
				return n;
			if (m.end <= start)
				continue;
			clip(&m, start, end);
			maps[n++] = m;
		}
		have -= (size_t)(line - buf);
		memmove(buf, line, have);
	}
	return n;
}

int maps_read(uint64_t start, uint64_t end, struct mapping *maps, int max)
{
	int n, fd = (int)raw_open("/proc/self/maps", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -1;
	n = maps_read_fd(fd, start, end, maps, max);
	raw_close(fd);
	return n;
}

bool maps_allow(int fd, uint64_t va, uint64_t len, bool write)
{
	uint64_t at = va;
	struct mapping maps[16];
	int i, n;

	while (at - va < len) {
		n = maps_read_fd(fd, at, va + len, maps, 16);
		if (n <= 0)
			return false;
		for (i = 0; i < n; i++) {
			if (maps[i].start != at ||
			    !(write ? maps[i].writable : maps[i].readable))
				return false;
			at = maps[i].end;
		}
	}
	return true;
}

int maps_threads(void)
{
	struct stat st;

	/* A link for ".", one for "..", and one for each thread. */
	if (RAW(SYS_newfstatat, AT_FDCWD, "/proc/self/task", &st, 0) ||
	    st.st_nlink < 3)
		return -1;
	return (int)st.st_nlink - 2;
}
