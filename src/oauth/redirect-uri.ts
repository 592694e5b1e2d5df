/** Schemes that run or read something in the browser itself, or start a program that belongs to no client. */
const forbiddenSchemes = new Set([
  'javascript:',
  'data:',
  'vbscript:',
  'file:',
  'blob:',
  'about:',
  'view-source:',
  'filesystem:',
  'intent:',
  'jar:',
  'resource:',
  'chrome:',
  'search-ms:',
  'smb:',
  'ldap:',
  'ssh:',
  'telnet:',
  'tel:',
  'sms:',
  'ftp:',
  'ws:',
  'wss:',
  'mailto:',
]); // prettier-ignore

const loopback = /^(127\.0\.0\.1|localhost|\[::1\])$/;

export function isLoopbackRedirect(uri: string): boolean {
  return URL.canParse(uri) && new URL(uri).protocol === 'http:' && loopback.test(new URL(uri).hostname);
}

/**
 * Why a redirect URI may not be registered, or undefined. The policy: https anywhere (claude.ai and vscode.dev among
 * them), http on loopback alone, and the private-use schemes of native clients, such as cursor:// (RFC 8252, 7.1).
 */
export function redirectUriProblem(uri: string): string | undefined {
  if (uri.length > 2000) return 'is longer than 2000 characters';
  if (!URL.canParse(uri) || /[^\x21-\x7e]|[\\<>"^`{|}]/.test(uri)) return 'is not a URI';
  const url = new URL(uri);
  if (url.hash || uri.includes('#')) return 'must not have a #fragment';
  if (url.username || url.password) return 'must not have a user name or password';
  if (url.protocol === 'https:') return undefined;
  if (url.protocol === 'http:')
    return loopback.test(url.hostname) ? undefined : 'must be https, or http on a loopback address';
  // Windows starts its own programs by ms-….
  return forbiddenSchemes.has(url.protocol) || url.protocol.startsWith('ms-')
    ? `must not use ${url.protocol}`
    : undefined;
}

/** Registered and requested are the same string, except for the port of a loopback address (RFC 8252, 7.3). */
export function isRegisteredRedirect(registered: readonly string[], requested: string): boolean {
  if (redirectUriProblem(requested) !== undefined) return false;
  if (registered.includes(requested)) return true;
  if (!isLoopbackRedirect(requested)) return false;
  const bare = withoutPort(requested);
  return registered.some((uri) => isLoopbackRedirect(uri) && withoutPort(uri) === bare);
}

/** The text without the port; nothing else is normalised, so dot segments and the like stay different. */
function withoutPort(uri: string): string {
  return uri.replace(/^(http:\/\/(?:\[::1\]|[^/:?#]+))(?::\d{1,5})?(?=[/?#]|$)/i, '$1');
}

/** Whether the answer stays on the person's device, where any program could be waiting for it (RFC 8252, 8.6). */
export function isLocalRedirect(uri: string): boolean {
  return new URL(uri).protocol !== 'https:';
}

/** What a person is shown: the host of a web address; with its scheme what is no web address, so that it poses as none. */
export function redirectTarget(uri: string): string {
  const { protocol, host } = new URL(uri);
  if (/^https?:$/.test(protocol)) return host;
  return host === '' ? protocol : `${protocol}//${host}`;
}
