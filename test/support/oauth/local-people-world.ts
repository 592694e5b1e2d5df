import { createBrowser, getNextUrl, type Page } from '../browser/browser.ts';
import { createPersonSession } from '../browser/dashboard.ts';
import { personRequest } from '../browser/person-request.ts';
import { type Json, type StartOptions, startToolhost, type TestToolhost } from '../toolhost/toolhost.ts';
import { type ClientDocumentSite, startClientDocuments } from '../upstreams/client-documents.ts';
import { findFreePort } from '../upstreams/listener.ts';
import { type RecordingUpstream, startRecordingUpstream } from '../upstreams/recording-upstream.ts';
import { type HonestProvider, startHonestProvider } from './honest-provider.ts';
import { logInAtProvider } from './log-in.ts';
import { toInputs } from './people-world.ts';

/** Steps of a person at a login, and the last page that they saw. */
export type LoginSteps = {
  /** Does all steps of the login. Returns the redirect to the client. */
  completeLogin(authorizationUrl: string | URL): Promise<URL>;
  /** Cancels the login when it asks for consent. Returns the redirect to the client. */
  cancelLogin(authorizationUrl: string | URL): Promise<URL>;
  /** Pages on which the person ended, oldest first. */
  readonly lastPages: readonly Page[];
};

/**
 * A service that real clients on this machine can reach, whose people sign in at an identity provider of the operator.
 */
export type LocalPeopleWorld = {
  toolhost: TestToolhost;
  provider: HonestProvider;
  upstream: RecordingUpstream;
  documents: ClientDocumentSite;
  /** Creates a server whose tool `who_am_i` returns the credential that the API received. */
  createServer(slug: string, config: Json): Promise<void>;
  /** Creates a person who logs in with a name, and enters these values if a form asks for them. */
  createPerson(name: string, fields?: Record<string, string>): LoginSteps;
  /** Sends a request to the REST API as the owner in the dashboard. */
  request(method: string, path: string, body?: Json): Promise<{ status: number; body: Json }>;
  stop(): Promise<void>;
};

export async function startLocalPeopleWorld({ env }: Pick<StartOptions, 'env'> = {}): Promise<LocalPeopleWorld> {
  const [provider, upstream, documents, port] = await Promise.all([
    startHonestProvider(),
    startRecordingUpstream(),
    startClientDocuments(),
    findFreePort(),
  ]);
  const toolhost = await startToolhost({
    env: { PORT: String(port), ...(await provider.createSignInClient(`http://127.0.0.1:${port}`)), ...env },
    egressPorts: [provider.port, upstream.port],
    runtimeOptions: documents.runtimeOptions,
  });
  upstream.on('GET /me', ({ headers }) => ({ body: { received: headers.authorization } }));
  const session = await createPersonSession(toolhost, { name: 'Olga' });
  return {
    toolhost,
    provider,
    upstream,
    documents,
    async createServer(slug, config) {
      const about = { name: 'who_am_i', description: 'Returns the credential.', input_schema: {} };
      const tools = [{ ...about, method: 'GET', url: `${upstream.url}/me` }];
      await toolhost.createServer({ name: `Server ${slug}`, slug, tools, ...config });
    },
    createPerson(name, fields = {}) {
      const lastPages: Page[] = [];
      const logIn = (decision: 'Allow' | 'Cancel') => async (authorizationUrl: string | URL) => {
        const browser = createBrowser();
        const end = new URL(authorizationUrl).searchParams.get('redirect_uri') ?? '';
        let page = await logInAtProvider(browser, await browser.get(authorizationUrl), name, end);
        if (page.html.includes('>Allow</button>')) page = await browser.press(page, decision);
        if (page.html.includes('>Save and continue</button>'))
          page = await browser.press(page, 'Save and continue', { fields: toInputs(fields) });
        lastPages.push(page);
        return getNextUrl(page);
      };
      return { lastPages, completeLogin: logIn('Allow'), cancelLogin: logIn('Cancel') };
    },
    request: (method, path, body) => personRequest(toolhost, session, method, path, body),
    async stop() {
      await toolhost.stop();
      await Promise.all([provider, upstream, documents].map((service) => service.close()));
    },
  };
}
