/* What a program sends to its terminal, cut into whole tokens: text, control characters, escape and
 * control sequences, titles. Every input gives tokens, none fails.
 *
 *     vt_next() until it has taken all bytes; what ends inside a token goes on with the next bytes
 */
#pragma once

#include <stddef.h>

enum {
    VT_PARAMS_MAX = 16,    /* of one sequence; more are left out, as xterm does */
    VT_PARAM_LIMIT = 9999, /* larger numbers become it */
    VT_TEXT_MAX = 1024,    /* bytes of one VT_TEXT */
    VT_TITLE_MAX = 256,    /* bytes; the rest of a title is left out */
};

enum vt_kind {
    VT_NONE,    /* the bytes are taken, the token is not complete */
    VT_TEXT,    /* characters of ASCII, or one other character, as UTF-8; U+FFFD for ill-formed */
    VT_CONTROL, /* `final` is the character, below 0x20 */
    VT_ESCAPE,  /* ESC intermediate final (ECMA-48 5.3, 13.2) */
    VT_CSI,     /* CSI leader params intermediate final (ECMA-48 5.4) */
    VT_TITLE,   /* of OSC 0 and OSC 2; what is not valid UTF-8 is left out */
};

struct vt_token {
    enum vt_kind kind;
    const char *text; /* VT_TEXT, VT_TITLE; good until the next call; no NUL behind */
    size_t len;
    char leader;       /* one of <=>?, or 0 */
    char intermediate; /* 0x20 to 0x2f, or 0; 0x7f for several */
    char final;
    unsigned params[VT_PARAMS_MAX]; /* 0: absent */
    size_t param_len;               /* at least 1 for VT_CSI */
};

enum vt_state {
    VT_IN_TEXT,
    VT_IN_ESCAPE,
    VT_IN_CSI,
    VT_IN_CSI_IGNORED, /* malformed: to its end */
    VT_IN_TITLE,       /* OSC; whether it is a title shows at its end */
    VT_IN_STRING,      /* DCS, SOS, PM, APC and others: to its end */
};

/* Zeroed it is at the beginning. Owns nothing. */
struct vt {
    enum vt_state state;
    enum vt_state behind; /* an ESC in a string: which string */
    struct vt_token token;
    char text[VT_TITLE_MAX + 2]; /* a torn character, or the string with its "2;" */
    size_t text_len;
};

/* Says how many of `len` (> 0) bytes it took, at most to the end of one token; none only when it
 * gives a token all the same. */
size_t vt_next(struct vt *vt, const char *bytes, size_t len, struct vt_token *ret);
