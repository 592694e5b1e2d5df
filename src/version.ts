import manifest from '../package.json' with { type: 'json' };

/** `commit` is in the manifest of the compiled program (`package/build.ts`), not in that of a checkout. */
export const { version, commit }: { version: string; commit?: string } = manifest;

/** How a person calls the command line of this installation. */
export const programName = commit === undefined ? 'bin/toolhost' : 'toolhost';

/** The User-Agent of requests; with the address of the service where that says who asks. */
export function userAgentOf(baseUrl?: string): string {
  return baseUrl === undefined ? `Toolhost/${version}` : `Toolhost/${version} (+${baseUrl})`;
}
