import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import fc from 'fast-check';
import { getRunCount } from '../sets.ts';
import { type Browser, getNextUrl, getRedirectTarget, type Page } from '../support/browser/browser.ts';
import { startLoginWorld } from '../support/oauth/login-world.ts';
import { clientWithId, type OAuthClient, type Tokens } from '../support/oauth/oauth-client.ts';

type Token = Tokens & { generation: number };

/** State of a login: the form that was shown, the browser that it was shown to, and the steps that are done. */
type Login = {
  client: number;
  browser: number;
  verifier: string;
  form: Page;
  isFormUsed: boolean;
  departure?: URL;
  returned?: URL;
  code?: string;
  isCodeUsed: boolean;
  isEnded: boolean;
  generation: number;
  tokens: Token[];
};

type Model = { logins: Login[] };
type Real = { browsers: Browser[]; clients: OAuthClient[]; slugs: string[] };
type Command = fc.AsyncCommand<Model, Real>;

/** The first two clients belong to the first server, the third to the second. */
const getServerIndex = (client: number): number => (client < 2 ? 0 : 1);
const one = fc.nat({ max: 2 });
const any = fc.nat();
/** Offset from the right browser or client. It is mostly 0, because otherwise no login would ever complete. */
const offset = fc.constantFrom(0, 0, 0, 0, 1, 2);
const rarely = fc.constantFrom(false, false, false, false, true);

describe('[sec D] OAuth proxy, checked against a model', async () => {
  // A fixed time, so that nothing that is valid for half a minute expires during a long run.
  const startedAt = Date.now();
  const world = await startLoginWorld({ runtimeOptions: { now: () => startedAt } });
  const slugs = [await world.createServer(), await world.createServer()];
  const ids: string[] = [];
  for (const client of [0, 1, 2]) ids.push((await world.registerClient(slugs[getServerIndex(client)] as string)).id);
  after(() => world.stop());

  const command = (name: string, run: (logins: Login[], real: Real) => Promise<void>): Command => ({
    check: () => true,
    run: (model, real) => run(model.logins, real),
    toString: () => name,
  });
  /** A step of any login that has come far enough for it. */
  const step = (
    name: string,
    isReady: (login: Login) => boolean,
    pick: number,
    run: (login: Login, real: Real, logins: Login[]) => Promise<void>,
  ): Command => ({
    check: (model) => model.logins.some(isReady),
    run: (model, real) => {
      const ready = model.logins.filter(isReady);
      return run(ready[pick % ready.length] as Login, real, model.logins);
    },
    toString: () => name,
  });
  const at = <T>(list: readonly T[], index: number): T => list[index % list.length] as T;

  const begin = fc.tuple(one, one, rarely).map(([client, browser, isAtOther]) => {
    const name = `begin client=${client} browser=${browser}${isAtOther ? ' at the other server' : ''}`;
    return command(name, async (logins, real) => {
      const { url, verifier } = at(real.clients, client).authorization();
      if (isAtOther) {
        url.pathname = `/mcp/${at(real.slugs, getServerIndex(client) + 1)}/authorize`;
        url.searchParams.delete('resource');
      }
      const form = await at(real.browsers, browser).get(url);
      assert.equal(form.status, isAtOther ? 400 : 200);
      assert.equal(getRedirectTarget(form), undefined, 'no page redirects before the person has consented');
      const fresh = { isFormUsed: false, isCodeUsed: false, isEnded: false, generation: 0, tokens: [] };
      if (!isAtOther) logins.push({ client, browser, verifier, form, ...fresh });
    });
  });

  const press = fc.tuple(any, offset, rarely).map(([pick, other, isCancelled]) => {
    const button = isCancelled ? 'Cancel' : 'Allow and log in';
    const name = `press ${button} login=${pick} browser+${other}`;
    return step(
      name,
      () => true,
      pick,
      async (login, real) => {
        const page = await at(real.browsers, login.browser + other).press(login.form, button);
        const isAccepted = other === 0 && !login.isFormUsed;
        assert.equal(page.status, isAccepted ? 200 : 403, page.html);
        if (!isAccepted) return;
        login.isFormUsed = true;
        if (button !== 'Cancel') login.departure = getNextUrl(page);
      },
    );
  });

  const hasDeparted = (login: Login) => login.departure !== undefined;
  const provider = fc.tuple(any, one).map(([pick, browser]) =>
    step(`provider login=${pick} browser=${browser}`, hasDeparted, pick, async (login, real) => {
      login.returned = getNextUrl(await at(real.browsers, browser).get(login.departure as URL));
    }),
  );

  const hasReturned = (login: Login) => login.returned !== undefined;
  const callback = fc.tuple(any, offset, rarely).map(([pick, other, isAtOther]) => {
    const name = `callback login=${pick} browser+${other}${isAtOther ? ' at the other server' : ''}`;
    return step(name, hasReturned, pick, async (login, real) => {
      const url = new URL(login.returned as URL);
      if (isAtOther) url.pathname = `/mcp/${at(real.slugs, getServerIndex(login.client) + 1)}/callback`;
      const page = await at(real.browsers, login.browser + other).get(url);
      const isValid = other === 0 && !isAtOther && login.code === undefined;
      const code = getRedirectTarget(page)?.searchParams.get('code') ?? undefined;
      assert.equal(code !== undefined, isValid, `${page.status} ${page.html}`);
      if (isValid && code !== undefined) login.code = code;
    });
  });

  const hasCode = (login: Login) => login.code !== undefined;
  const redeem = fc.tuple(any, offset, rarely, any).map(([pick, other, isForeign, whose]) => {
    const name = `redeem login=${pick} client+${other}${isForeign ? ` verifier of ${whose}` : ''}`;
    return step(name, hasCode, pick, async (login, real, logins) => {
      const { verifier } = isForeign ? at(logins, whose) : login;
      const reply = await at(real.clients, login.client + other).redeem(login.code as string, verifier);
      const isOwner = other === 0 && verifier === login.verifier;
      assert.equal(reply.status, isOwner && !login.isCodeUsed ? 200 : 400, reply.text);
      if (!isOwner) return;
      if (login.isCodeUsed) login.isEnded = true;
      else login.tokens.push({ ...(reply.body as Tokens), generation: 0 });
      login.isCodeUsed = true;
    });
  });

  const hasTokens = (login: Login) => login.tokens.length > 0;

  const use = fc.tuple(any, any, fc.nat({ max: 1 })).map(([pick, which, server]) =>
    step(`use login=${pick} token=${which} server=${server}`, hasTokens, pick, async (login, real) => {
      const { access_token } = at(login.tokens, which);
      const { status } = await world.listTools(at(real.slugs, server), access_token);
      assert.equal(status, getServerIndex(login.client) === server && !login.isEnded ? 200 : 401);
    }),
  );

  const refresh = fc.tuple(any, any, offset).map(([pick, which, other]) =>
    step(`refresh login=${pick} token=${which} client+${other}`, hasTokens, pick, async (login, real) => {
      const { refresh_token, generation } = at(login.tokens, which);
      const reply = await at(real.clients, login.client + other).refresh(refresh_token);
      const isOwner = other === 0 && !login.isEnded;
      // The direct predecessor stays valid for a short time, and a run takes less than that.
      const isValid = isOwner && generation >= login.generation - 1;
      assert.equal(reply.status, isValid ? 200 : 400, reply.text);
      if (isValid) {
        login.generation = Math.max(login.generation, generation + 1);
        login.tokens.push({ ...(reply.body as Tokens), generation: login.generation });
      } else if (isOwner) login.isEnded = true;
    }),
  );

  const revoke = fc.tuple(any, any, offset, fc.boolean()).map(([pick, which, other, isRefresh]) =>
    step(`revoke login=${pick} token=${which} client+${other}`, hasTokens, pick, async (login, real) => {
      const token = at(login.tokens, which);
      const reply = await at(real.clients, login.client + other).revoke(
        isRefresh ? token.refresh_token : token.access_token,
      );
      assert.equal(reply.status, 200);
      if (other === 0) login.isEnded = true;
    }),
  );

  it('issues a token only to the client and server that a browser consented to', async () => {
    const steps = [begin, press, provider, callback, redeem, use, use, refresh, refresh, revoke];
    await fc.assert(
      fc.asyncProperty(fc.commands(steps, { maxCommands: 100, size: 'max' }), async (commands) => {
        const address = `2001:db8:0:${Math.floor(Math.random() * 65_536).toString(16)}::1`;
        const clients = ids.map((id, client) =>
          clientWithId(id, { issuer: world.issuer(at(slugs, getServerIndex(client))), address }),
        );
        const real = { browsers: [world.newBrowser(), world.newBrowser(), world.newBrowser()], clients, slugs };
        await fc.asyncModelRun(() => ({ model: { logins: [] }, real }), commands);
      }),
      // Biased runs are mostly too short to reach a token.
      { numRuns: getRunCount(30), unbiased: true },
    );
  });
});
