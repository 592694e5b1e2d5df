/** Matches a token (RFC 9110, 5.6.2), such as a method or the name of a header. */
export const tokenPattern = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
