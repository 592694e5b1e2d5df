import manifest from '../package.json' with { type: 'json' };

export const { version } = manifest;

/** The User-Agent of requests; with the address of the service where that says who asks. */
export function userAgentOf(baseUrl?: string): string {
  return baseUrl === undefined ? `Toolhost/${version}` : `Toolhost/${version} (+${baseUrl})`;
}
