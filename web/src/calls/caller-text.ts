/** Kinds of callers in words. */
export const callerKinds: { [kind: string]: string } = {
  api_key: 'API key',
  oauth: 'Login',
  caller_token: 'Own token',
  try_out: 'Try-out',
};

/** Who called, in words. */
export function callerText(kind: string): string {
  return callerKinds[kind] ?? kind.replaceAll('_', ' ');
}
