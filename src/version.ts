import manifest from '../package.json' with { type: 'json' };

/** `commit` is in the manifest of the compiled program (`package/build.ts`), not in that of a checkout. */
export const { version, commit }: { version: string; commit?: string } = manifest;

/** Command that a person types to run the command line as this process was run; npm sets `npm_command` in `npx`. */
export const programName =
  commit === undefined ? 'bin/toolhost' : process.env.npm_command === undefined ? 'toolhost' : 'npx toolhost';

/** The User-Agent of requests; with the address of the service where that says who asks. */
export function userAgentOf(baseUrl?: string): string {
  return baseUrl === undefined ? `Toolhost/${version}` : `Toolhost/${version} (+${baseUrl})`;
}
