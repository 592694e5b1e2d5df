/**
 * `npm run seed`: a workspace with servers, people, keys and four weeks of calls, so that every page of the dashboard has
 * something to show. `-- --add` puts it beside what is there; `-- --large` also makes 1,000 servers and a million calls.
 */
import { reportFailure } from '../../src/cli/print.ts';
import { type Seeded, seed } from './seed.ts';

const options = process.argv.slice(2);
const allowed = ['--add', '--large'];
const unknown = options.find((option) => !allowed.includes(option));
if (unknown === undefined) {
  try {
    process.stdout.write(
      summary(await seed(process.env, { adds: options.includes('--add'), isLarge: options.includes('--large') })),
    );
  } catch (error) {
    process.exitCode = reportFailure(error);
  }
} else {
  process.stderr.write(`error: ${unknown} is not an option; allowed: ${allowed.join(', ')}\n`);
  process.exitCode = 2;
}

/** Text for people: the seeded data, how to sign in and what to look at. */
function summary({ database, settings, servers, calls, baseUrl }: Seeded): string {
  return `
Seeded ${database}: ${servers.toLocaleString('en')} servers, 4 people, 6 API keys, 4 logins and ${calls.toLocaleString('en')} calls of the last four weeks.

  Start the service:  ${settings}npm start
  Sign in:            ${baseUrl}, then Continue. Local mode has one person, you, an owner of the workspace.

  ${baseUrl}/servers             servers with a stored credential, a login, the caller's token, and open
  ${baseUrl}/servers/invoices    an editor with four tools; Versions has three to compare and restore
  ${baseUrl}/servers/helpdesk    Logins of four agents, one of which the provider ended
  ${baseUrl}/servers/warehouse   a secret without a value, and a tool that is switched off
  ${baseUrl}/servers/projects    the worked example, whose tools can be called; the token is local-example-key
  ${baseUrl}/calls               charts, filters, and what the newest calls of invoices sent and got
  ${baseUrl}/keys                keys that work, one that expired, one that was revoked, one whose maker has left
  ${baseUrl}/settings            members, an invitation, limits and retention
  ${baseUrl}/audit               who changed what in the last month

The hosts under example.com do not exist: tools of the other servers end with an error when they are called.
`;
}
