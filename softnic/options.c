/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Options shared by `sfnic` and `sfnicd`, and the directory where they meet.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rnic/rnic.h"
#include "softnic/options.h"

/* The preload library prepends it to paths in a buffer on the stack. */
#define DIR_LEN_MAX 200

/* The core appends one digit to the name of a device. */
#define NAME_LEN_MAX (RNIC_NAME_MAX - 2)

static const struct sfnic_options defaults = {
	.devices = 1,
	.ports = 1,
	.link_layer = RNIC_INFINIBAND,
	.mtu = SFNIC_MTU_AUTO,
	.name = "sfab",
	.arena_size = 32ULL << 30,
	.linger = 10,
	.addrs = "-",
};

struct word {
	const char *text;
	uint32_t value;
};

static const struct word link_layers[] = {
	{"infiniband", RNIC_INFINIBAND},
	{"ib", RNIC_INFINIBAND},
	{"ethernet", RNIC_ETHERNET},
	{"eth", RNIC_ETHERNET},
	{NULL, 0},
};

static const struct word mtus[] = {
	{"256", RNIC_MTU_256},
	{"512", RNIC_MTU_512},
	{"1024", RNIC_MTU_1024},
	{"2048", RNIC_MTU_2048},
	{"4096", RNIC_MTU_4096},
	{"auto", SFNIC_MTU_AUTO},
	{NULL, 0},
};

static const struct word shown[] = {
	{"hide", 0},
	{"show", 1},
	{NULL, 0},
};

static bool parse_word(const struct word *words, const char *text, uint32_t *v)
{
	for (; words->text; words++) {
		if (!strcasecmp(words->text, text)) {
			*v = words->value;
			return true;
		}
	}
	return false;
}

static const char *word_text(const struct word *words, uint32_t value)
{
	for (; words->text; words++)
		if (words->value == value)
			return words->text;
	return "?";
}

/* Decimal digits only: strtoull() alone would take " -1" for a number. */
static bool parse_u64(const char *text, const char **end, uint64_t *v)
{
	char *stop;

	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	*v = strtoull(text, &stop, 10);
	*end = stop;
	return errno == 0;
}

static bool parse_number(const char *text, uint32_t min, uint32_t max,
			 uint32_t *v)
{
	const char *end;
	uint64_t n;

	if (!parse_u64(text, &end, &n) || *end || n < min || n > max)
		return false;
	*v = n;
	return true;
}

static bool parse_devices(struct sfnic_options *opt, const char *text)
{
	return parse_number(text, 1, RNIC_MAX_DEVICES, &opt->devices);
}

static bool parse_ports(struct sfnic_options *opt, const char *text)
{
	return parse_number(text, 1, RNIC_MAX_PORTS, &opt->ports);
}

static bool parse_link_layer(struct sfnic_options *opt, const char *text)
{
	return parse_word(link_layers, text, &opt->link_layer);
}

static bool parse_mtu(struct sfnic_options *opt, const char *text)
{
	return parse_word(mtus, text, &opt->mtu);
}

static bool parse_host_devices(struct sfnic_options *opt, const char *text)
{
	return parse_word(shown, text, &opt->host_devices);
}

static bool parse_linger(struct sfnic_options *opt, const char *text)
{
	return parse_number(text, 1, 365 * 86400, &opt->linger);
}

static bool parse_arena(struct sfnic_options *opt, const char *text)
{
	static const char units[] = "KMGT";
	const char *end, *unit;
	unsigned int shift = 0;
	uint64_t n;

	if (!parse_u64(text, &end, &n))
		return false;
	if (*end) {
		unit = strchr(units, toupper((unsigned char)*end));
		if (!unit || end[1])
			return false;
		shift = 10 * (unit - units + 1);
	}
	if (n > (1ULL << 46) >> shift)
		return false;
	n <<= shift;
	if (n < 2 * RNIC_ARENA_DYNAMIC)
		return false;
	opt->arena_size = (n + RNIC_PAGE - 1) & ~(uint64_t)(RNIC_PAGE - 1);
	return true;
}

/* ---- addresses of devices: "IP=DEVICE,..." --------------------------- */

/* The next of the list, which @at moves past. */
static bool next_addr(const char **at, char *ip, size_t len, uint32_t *dev)
{
	size_t all = strcspn(*at, ","), n = strcspn(*at, "=,");
	const char *p = *at;

	if (n == all || n >= len || all != n + 2 || p[n + 1] < '0' ||
	    p[n + 1] >= '0' + RNIC_MAX_DEVICES)
		return false;
	memcpy(ip, p, n);
	ip[n] = '\0';
	*dev = (uint32_t)(p[n + 1] - '0');
	*at = p + all + (p[all] == ',');
	return true;
}

void sfnic_addr_each(const char *addrs,
		     void (*each)(void *arg, const char *ip, uint32_t dev),
		     void *arg)
{
	char ip[INET6_ADDRSTRLEN];
	uint32_t dev;

	while (*addrs && next_addr(&addrs, ip, sizeof(ip), &dev))
		each(arg, ip, dev);
}

int sfnic_addr_device(const char *addrs, int family, const void *ip)
{
	char wanted[INET6_ADDRSTRLEN], text[INET6_ADDRSTRLEN];
	uint32_t dev;

	if (!inet_ntop(family, ip, wanted, sizeof(wanted)))
		return -1;
	while (*addrs && next_addr(&addrs, text, sizeof(text), &dev))
		if (!strcmp(text, wanted))
			return (int)dev;
	return -1;
}

/* An address can be written in many ways; kept is the one of inet_ntop(3). */
static bool canonical(const char *text, char *to, size_t len)
{
	uint8_t ip[16];
	int family = strchr(text, ':') ? AF_INET6 : AF_INET;

	return inet_pton(family, text, ip) == 1 &&
	       inet_ntop(family, ip, to, (socklen_t)len);
}

static bool parse_addrs(struct sfnic_options *opt, const char *text)
{
	char ip[INET6_ADDRSTRLEN], name[INET6_ADDRSTRLEN];
	size_t len = 0;
	uint32_t dev;
	int n;

	if (!strcmp(text, "-")) {
		snprintf(opt->addrs, sizeof(opt->addrs), "-");
		return true;
	}
	/* Said again, it adds to what has been said. */
	if (strcmp(opt->addrs, "-"))
		len = strlen(opt->addrs);
	do {
		if (!next_addr(&text, ip, sizeof(ip), &dev) ||
		    !canonical(ip, name, sizeof(name)))
			return false;
		n = snprintf(opt->addrs + len, sizeof(opt->addrs) - len,
			     "%s%s=%u", len ? "," : "", name, dev);
		if (n < 0 || (size_t)n >= sizeof(opt->addrs) - len)
			return false;
		len += (size_t)n;
	} while (*text);
	return true;
}

/* Whether they exist can be said when all options are known. */
static bool devices_exist(const struct sfnic_options *opt)
{
	const char *at = opt->addrs;
	char ip[INET6_ADDRSTRLEN];
	uint32_t dev;

	while (*at && next_addr(&at, ip, sizeof(ip), &dev)) {
		if (dev < opt->devices)
			continue;
		fprintf(stderr,
			"sfnic: --addr %s=%u: there is no device %u, raise "
			"--devices\n",
			ip, dev, dev);
		return false;
	}
	return true;
}

/* Names end up in paths and in other programs' lists: no surprises. */
static bool plain_name(const char *text, size_t max, const char *also)
{
	size_t i;

	for (i = 0; text[i]; i++)
		if (!isalnum((unsigned char)text[i]) &&
		    (i == 0 || !strchr(also, text[i])))
			return false;
	return i > 0 && i <= max;
}

static bool parse_name(struct sfnic_options *opt, const char *text)
{
	if (!isalpha((unsigned char)*text) ||
	    !plain_name(text, NAME_LEN_MAX, "_-"))
		return false;
	snprintf(opt->name, sizeof(opt->name), "%s", text);
	return true;
}

static bool parse_instance(struct sfnic_options *opt, const char *text)
{
	if (*text && !plain_name(text, sizeof(opt->instance) - 1, "_-."))
		return false;
	snprintf(opt->instance, sizeof(opt->instance), "%s", text);
	return true;
}

static const struct option_desc {
	const char *name;
	bool (*parse)(struct sfnic_options *opt, const char *text);
	bool fabric; /* says what the fabric is, not which one */
	const char *wanted;
} options[] = {
	{"devices", parse_devices, true, "a number from 1 to 8"},
	{"ports", parse_ports, true, "1 or 2"},
	{"link-layer", parse_link_layer, true, "infiniband or ethernet"},
	{"mtu", parse_mtu, true, "256, 512, 1024, 2048, 4096 or auto"},
	{"name", parse_name, true,
	 "a letter, then up to 29 letters, digits, '_' or '-'"},
	{"arena", parse_arena, true, "a size from 128M to 64T, such as 16G"},
	{"addr", parse_addrs, true,
	 "addresses and numbers of devices, such as 127.0.0.2=1,::1=0"},
	{"host-devices", parse_host_devices, true, "show or hide"},
	{"linger", parse_linger, true, "a number of seconds, 1 or more"},
	{"instance", parse_instance, false,
	 "up to 31 letters, digits, '_', '-' or '.'"},
};

_Static_assert(RNIC_MAX_DEVICES == 8 && RNIC_MAX_PORTS == 2 &&
		       NAME_LEN_MAX == 30 &&
		       2 * RNIC_ARENA_DYNAMIC == 128 << 20,
	       "the texts above name the limits");

/* The option that @word names; @value: what follows '=', or NULL. */
static const struct option_desc *find_option(const char *word,
					     const char **value)
{
	size_t i, len;

	if (strncmp(word, "--", 2))
		return NULL;
	word += 2;
	len = strcspn(word, "=");
	*value = word[len] ? word + len + 1 : NULL;
	for (i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		if (strlen(options[i].name) == len &&
		    !memcmp(options[i].name, word, len))
			return &options[i];
	return NULL;
}

int sfnic_options_parse(struct sfnic_options *opt, int argc, char **argv)
{
	const struct option_desc *desc;
	const char *value;
	int i;

	*opt = defaults;
	for (i = 1; i < argc; i++) {
		desc = find_option(argv[i], &value);
		if (!desc)
			break;
		if (!value && i + 1 < argc)
			value = argv[++i];
		if (!value || !desc->parse(opt, value)) {
			fprintf(stderr, "sfnic: --%s wants %s%s%s%s\n",
				desc->name, desc->wanted,
				value ? ", not '" : "", value ? value : "",
				value ? "'" : "");
			return -1;
		}
		if (desc->fabric)
			opt->given = true;
	}
	return devices_exist(opt) ? i : -1;
}

void sfnic_options_line(const struct sfnic_options *opt, char *buf, size_t len)
{
	snprintf(buf, len,
		 "devices=%" PRIu32 " ports=%" PRIu32
		 " link-layer=%s mtu=%s name=%s arena=%" PRIu64
		 "K linger=%" PRIu32 " host-devices=%s addr=%s",
		 opt->devices, opt->ports,
		 word_text(link_layers, opt->link_layer),
		 word_text(mtus, opt->mtu), opt->name, opt->arena_size >> 10,
		 opt->linger, word_text(shown, opt->host_devices), opt->addrs);
}

/* ---- the runtime directory ------------------------------------------ */

/*
 * Makes @dir, or accepts it as it is: it must be a directory of ours that
 * nobody else can enter, and no symbolic link that somebody else laid out.
 */
static int own_directory(const char *dir, char *msg, size_t msg_len)
{
	struct stat st;

	if (mkdir(dir, 0700) && errno != EEXIST) {
		int err = errno;

		snprintf(msg, msg_len,
			 "cannot make %s: %s; set SFNIC_DIR to a directory "
			 "of your own",
			 dir, strerror(err));
		return err;
	}
	if (lstat(dir, &st)) {
		int err = errno;

		snprintf(msg, msg_len, "cannot look at %s: %s", dir,
			 strerror(err));
		return err;
	}
	if (!S_ISDIR(st.st_mode)) {
		snprintf(msg, msg_len,
			 "%s is not a directory; remove it or set SFNIC_DIR",
			 dir);
		return ENOTDIR;
	}
	if (st.st_uid != geteuid()) {
		snprintf(msg, msg_len,
			 "%s belongs to uid %u; set SFNIC_DIR to a directory "
			 "of your own",
			 dir, (unsigned int)st.st_uid);
		return EPERM;
	}
	if (st.st_mode & 077) {
		snprintf(msg, msg_len,
			 "others may enter %s; run chmod 700 on it", dir);
		return EPERM;
	}
	return 0;
}

/* Is @base a place that is ours alone already? */
static bool private_base(const char *base)
{
	struct stat st;

	return base && base[0] == '/' && !stat(base, &st) &&
	       S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
	       !(st.st_mode & 022) && !access(base, W_OK | X_OK);
}

/* The directory of this user, without a message about the ones passed over. */
static int user_directory(char *dir, size_t len, char *msg, size_t msg_len)
{
	char run[32];
	const char *bases[] = {getenv("XDG_RUNTIME_DIR"), run};
	size_t i;
	int n;

	snprintf(run, sizeof(run), "/run/user/%u", (unsigned int)geteuid());
	for (i = 0; i < sizeof(bases) / sizeof(bases[0]); i++) {
		if (!private_base(bases[i]) ||
		    strlen(bases[i]) > DIR_LEN_MAX / 2)
			continue;
		n = snprintf(dir, len, "%s/sfnic", bases[i]);
		if (n > 0 && (size_t)n < len &&
		    !own_directory(dir, msg, msg_len))
			return 0;
	}
	snprintf(dir, len, "/tmp/sfnic-%u", (unsigned int)geteuid());
	return own_directory(dir, msg, msg_len);
}

static unsigned long long net_namespace(void)
{
	struct stat st;

	return stat("/proc/self/ns/net", &st) ? 0 : st.st_ino;
}

static int check_length(const char *dir, size_t need, size_t len, char *msg,
			size_t msg_len)
{
	if (need < len && need <= DIR_LEN_MAX)
		return 0;
	snprintf(msg, msg_len,
		 "the path %.40s... is too long; set SFNIC_DIR to one of at "
		 "most %d characters",
		 dir, DIR_LEN_MAX);
	return ENAMETOOLONG;
}

static int named_directory(const char *name, char *dir, size_t len, char *msg,
			   size_t msg_len)
{
	int err;

	if (name[0] != '/') {
		snprintf(msg, msg_len,
			 "SFNIC_DIR=%.60s must be an absolute path", name);
		return EINVAL;
	}
	err = check_length(name, strlen(name), len, msg, msg_len);
	if (err)
		return err;
	snprintf(dir, len, "%s", name);
	return own_directory(dir, msg, msg_len);
}

int sfnic_runtime_dir(const char *instance, char *dir, size_t len, char *msg,
		      size_t msg_len)
{
	const char *name = getenv("SFNIC_DIR");
	char user[DIR_LEN_MAX + 1];
	int err, n;

	if (name && *name)
		return named_directory(name, dir, len, msg, msg_len);
	err = user_directory(user, sizeof(user), msg, msg_len);
	if (err)
		return err;
	if (!instance)
		instance = "";
	n = snprintf(dir, len, "%s/%llu%s%s", user, net_namespace(),
		     *instance ? "-" : "", instance);
	err = check_length(user, n, len, msg, msg_len);
	return err ? err : own_directory(dir, msg, msg_len);
}
