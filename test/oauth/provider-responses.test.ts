import assert from 'node:assert/strict';
import { after, beforeEach, describe, it } from 'node:test';
import { maxHeaderLength } from '@toolhost/tool-config/http/values';
import { getNextUrl, visibleText } from '../support/browser/browser.ts';
import { startLoginWorld } from '../support/oauth/login-world.ts';
import { assertOAuthError, type OAuthClient } from '../support/oauth/oauth-client.ts';
import type { Json } from '../support/toolhost/toolhost.ts';

describe('tokens and errors of the provider', async () => {
  const world = await startLoginWorld();
  const createClient = async (token_mode: string) => world.registerClient(await world.createServer({}, { token_mode }));
  const clients = { issued: await createClient('issued'), passthrough: await createClient('passthrough') };
  beforeEach(() => {
    world.provider.onLogin();
    world.provider.onToken();
  });
  after(() => world.stop());

  /** Completes a login with this token response. Returns the parameters that the client receives. */
  async function completeLogin(client: OAuthClient, body: Json, status = 200) {
    world.provider.onToken(() => ({ status, body }));
    const page = await world.returnFromProvider(client.authorization());
    const { searchParams } = getNextUrl(page);
    const [error, description] = [searchParams.get('error'), searchParams.get('error_description')];
    return { error, description: description ?? '', hasCode: searchParams.has('code'), page };
  }

  const fullResponse: Json = { access_token: 'a-token', token_type: 'bearer', expires_in: 600 };
  const acceptedTypes = [
    ...['bearer', 'Bearer', 'BEARER', 'bot', 'user', 'User Access Token', 'Application Access Token', 'JWT', 'N_A'],
    ...['urn:ietf:params:oauth:token-type:jwt', 'bearer2', ' bearer', 'x'.repeat(100)],
  ];
  const proofTypes = ['mac', 'MAC', 'DPoP', 'dpop', 'pop', 'PoP', ' DPoP '];
  const markup = '<script>alert(1)</script>';

  const unusable = (field: string) => {
    const description = `the token endpoint responded without a usable ${field}`;
    return { error: 'server_error', description, hasCode: false };
  };
  const modes = ['issued', 'passthrough'] as const;

  for (const mode of modes) {
    it(`[find E4] accepts a token of any type that needs no proof of possession (${mode})`, async () => {
      for (const token_type of acceptedTypes)
        assert.equal((await completeLogin(clients[mode], { ...fullResponse, token_type })).hasCode, true, token_type);
    });

    it(`[find E4] ends the login and names the type when a token needs a proof of possession (${mode})`, async () => {
      for (const token_type of proofTypes) {
        const { page, ...outcome } = await completeLogin(clients[mode], { ...fullResponse, token_type });
        const type = `a token of the type ${token_type.trim()}`;
        const description = `the token endpoint returned ${type}, but only bearer tokens can be forwarded`;
        assert.deepEqual(outcome, { error: 'server_error', description, hasCode: false });
        assert.doesNotMatch(page.html, /alert|a-token/);
      }
    });

    it(`[find E4] ends the login when token_type is not a string (${mode})`, async () => {
      for (const token_type of [5, true, {}, ['bearer']]) {
        const { page: _, ...outcome } = await completeLogin(clients[mode], { ...fullResponse, token_type });
        assert.deepEqual(outcome, unusable('token_type'));
      }
    });
  }

  it('[find A5] ends the login when a token, a refresh token, or the scopes are longer than a header may be', async () => {
    for (const mode of modes) {
      for (const field of ['access_token', 'refresh_token', 'scope']) {
        const longest = 'a'.repeat(maxHeaderLength);
        assert.equal((await completeLogin(clients[mode], { ...fullResponse, [field]: longest })).hasCode, true, field);
        const response = { ...fullResponse, [field]: `${longest}a` };
        const { page: _, ...outcome } = await completeLogin(clients[mode], response);
        assert.deepEqual(outcome, unusable(field));
      }
    }
  });

  it('[find A5] ends the login when a refresh token or the scopes, escaped as JSON, are longer than a header may be', async () => {
    for (const field of ['refresh_token', 'scope']) {
      // JSON escapes this character with six bytes.
      const fits = '\u0001'.repeat(maxHeaderLength / 6);
      assert.equal((await completeLogin(clients.issued, { ...fullResponse, [field]: fits })).hasCode, true, field);
      for (const longer of ['\u0001'.repeat(3000), '\u20ac'.repeat(6000), '"'.repeat(9000)]) {
        const { page: _, ...outcome } = await completeLogin(clients.issued, { ...fullResponse, [field]: longer });
        assert.deepEqual(outcome, unusable(field));
      }
    }
  });

  it('[find E4] accepts a token response without token_type in issued mode, and rejects it in passthrough mode [spec 7]', async () => {
    for (const token_type of [undefined, null, '']) {
      assert.equal((await completeLogin(clients.issued, { ...fullResponse, token_type })).hasCode, true);
      const { error, hasCode } = await completeLogin(clients.passthrough, { ...fullResponse, token_type });
      assert.deepEqual([error, hasCode], ['server_error', false]);
    }
  });

  it('[find E4] issues no token when a refresh returns a token of another type', async () => {
    const { refresh_token } = await world.getTokens(clients.passthrough);
    world.provider.onToken(() => ({ body: { ...fullResponse, token_type: 'DPoP' } }));
    const reply = await clients.passthrough.refresh(refresh_token);
    assertOAuthError(reply, 500, 'server_error');
    assert.match(String(reply.body.error_description), /of the type DPoP/);
  });

  it('[find B3] ends a login whose refresh token has the form of a Toolhost token, and never sends that token', async () => {
    for (const mode of modes) {
      const theirs = `thr_${'aB3'.repeat(14)}z`;
      world.provider.onToken(() => ({ body: { ...fullResponse, expires_in: 1, refresh_token: theirs } }));
      const { refresh_token } = await world.getTokens(clients[mode]);
      let requestCount = 0;
      world.provider.onToken(() => {
        requestCount++;
        return { body: fullResponse };
      });
      world.advanceClock(5000);
      const reply = await clients[mode].refresh(refresh_token);
      assertOAuthError(reply, 400, 'invalid_grant');
      assert.equal(JSON.stringify(reply.body).includes(theirs), false);
      assert.equal(requestCount, 0, mode);
    }
  });

  const wellKnownCodes = ['redirect_uri_mismatch', 'invalid_grant', 'bad_verification_code', 'invalid_scope'];
  const codes = [...wellKnownCodes, 'AADSTS50011', 'x.y-Z_1'];

  it("[find E4] reports the token endpoint's error code to the client and the person", async () => {
    for (const mode of modes) {
      for (const code of codes) {
        for (const status of [200, 400, 401, 403]) {
          const { description, hasCode, page } = await completeLogin(clients[mode], { error: code }, status);
          assert.equal(description, `the provider does not accept this login and returned the error ${code}`);
          assert.equal(hasCode, false);
          assert.ok(visibleText(page).includes(code));
        }
      }
    }
  });

  it("[find E4] reports the login page's error code to the client", async () => {
    for (const code of [...codes, 'login_required', 'unauthorized_client']) {
      world.provider.onLogin(() => ({ error: code, error_description: markup }));
      const { searchParams } = getNextUrl(await world.returnFromProvider(clients.issued.authorization()));
      assert.equal(searchParams.get('error_description'), `the provider responded to the login with the error ${code}`);
      assert.equal(searchParams.get('error'), code === 'invalid_scope' ? code : 'server_error');
    }
  });

  it('[find E8] reports the error description of the login page or the token endpoint to the person, the audit log, and the log, but not to the client', async () => {
    const { clientSecret } = world.provider;
    const unchanged = 'E65004: An administrator has to allow this application';
    for (const [sent, shown] of [
      [unchanged, unchanged],
      ['<b>Call</b>\r\n+1 555\u202e', '<b>Call</b> +1 555\ufffd'],
      ['Session 8f14e45fceea167a5a36dedd4bea2543 is over', 'Session [redacted] is over'],
      ['é'.repeat(400), `${'é'.repeat(299)}…`],
      [`for ${clientSecret}!`, 'for [redacted]!'],
    ] as const) {
      for (const isAtLogin of [true, false]) {
        const error = { error: 'access_denied', error_description: sent };
        world.provider.onLogin(isAtLogin ? () => error : undefined);
        const { description, page } = await completeLogin(clients.issued, error, 400);
        const { host } = new URL(world.provider.url);
        const text = visibleText(page);
        assert.ok(text.includes(`${host} says: “${shown}”`), text);
        assert.ok(!page.html.includes('<b>') && !page.html.includes(clientSecret));
        assert.match(page.html, /http-equiv="refresh" content="20;/, 'the page stays long enough to be read');
        assert.ok(!description.includes(shown));
        const { body } = await world.toolhost.rest('GET', '/audit?limit=1');
        const [event] = body.events as { detail: Json }[];
        assert.equal(event?.detail.provider_says, shown);
      }
    }
  });

  it('[find E8] redirects immediately after an error without a description', async () => {
    for (const error_description of [undefined, '', ' \n']) {
      const description = error_description === undefined ? {} : { error_description };
      world.provider.onLogin(() => ({ error: 'access_denied', ...description }));
      const page = await world.returnFromProvider(clients.issued.authorization());
      assert.doesNotMatch(page.html, /says: “/);
      assert.equal(page.status, 302);
    }
  });

  it('[find E4] shows an error code only if it is a single word: no markup, no sentence, no secret', async () => {
    const { clientSecret } = world.provider;
    const errorCodes = [
      ...[markup, 'a b', 'please visit evil.example', 'a"b', 'a\\b', 'a\u0000b', 'ü', '\u202egnp', 'x'.repeat(65)],
      ...[clientSecret, `x${clientSecret}`, clientSecret.slice(3, 20)],
    ];
    for (const error of errorCodes)
      for (const isAtLogin of [true, false]) {
        world.provider.onLogin(isAtLogin ? () => ({ error }) : undefined);
        const { description, hasCode, page } = await completeLogin(clients.issued, { error }, 400);
        assert.equal(hasCode, false);
        assert.match(
          description,
          /^(the provider responded to the login with an error|the provider does not accept this login)$/,
        );
        assert.ok(!page.html.includes(clientSecret.slice(3, 20)));
      }
  });
});
