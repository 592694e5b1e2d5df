import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Check } from '@toolhost/mcp-doctor/checks';
import { runDoctor, runDoctorWithLogin } from '../support/toolhost/doctor-command.ts';
import { runToolhostCommand } from '../support/toolhost/toolhost-command.ts';
import {
  type Fault,
  type ForeignResponse,
  jsonResponse,
  startForeignMcpServer,
} from '../support/upstreams/foreign-mcp-server.ts';
import { replaceMethodResponse, replaceMethodResult, replaceResponse } from '../support/upstreams/mcp-faults.ts';

const validToken = 'the-right-token';

describe('toolhost doctor', () => {
  describe('with a call', () => {
    const examineCall = async (fault: Fault | undefined, ...args: string[]) => {
      const server = await startForeignMcpServer(fault);
      const examined = await runDoctor(server.address, validToken, ...args);
      await server.close();
      return { ...examined, call: examined.checks.find(({ id }) => id === 'call') };
    };

    it('[ship 6] calls a read-only tool, and any other tool only with --yes', async () => {
      const read = await examineCall(undefined, '--call', 'first', '--args', '{"a": 1}');
      assert.deepEqual([read.code, read.call?.status], [0, 'ok']);
      assert.match(read.call?.detail ?? '', /text: called first$/);
      const refused = await examineCall(undefined, '--call', 'second');
      assert.deepEqual([refused.code, refused.call?.status], [0, 'warning']);
      assert.match(refused.call?.detail ?? '', /not called.*readOnlyHint.*--yes/);
      const allowed = await examineCall(undefined, '--call', 'second', '--yes');
      assert.match(allowed.call?.detail ?? '', /called second/);
    });

    const faultCases: [name: string, fault: Fault, status: Check['status'], detail: RegExp][] = [
      ['has no content', replaceMethodResult('tools/call', {}), 'problem', /no content/],
      [
        'is a protocol error',
        replaceMethodResponse('tools/call', () =>
          jsonResponse(200, { jsonrpc: '2.0', id: 20, error: { code: -32603, message: 'a\u001b[2Jb' } }),
        ),
        'problem',
        /-32603: a \[2Jb/,
      ],
      [
        'reports a failure',
        replaceMethodResult('tools/call', { isError: true, content: [{ type: 'text', text: 'no\nway' }] }),
        'warning',
        /error: no way/,
      ],
      [
        'is a list that Gemini CLI parses as structured content',
        replaceMethodResult('tools/call', { content: [{ type: 'text', text: '[1,2]' }] }),
        'warning',
        /Gemini CLI fails/,
      ],
      [
        'lacks the structured content that the tool announces',
        replaceMethodResponse('tools/list', (defaultResponse) => {
          const listed = structuredClone(defaultResponse);
          const { tools } = (listed.body as { result: { tools: { outputSchema?: object }[] } }).result;
          for (const each of tools) each.outputSchema = { type: 'object' };
          return listed;
        }),
        'problem',
        /structuredContent/,
      ],
    ];
    for (const [name, fault, status, detail] of faultCases) {
      it(`[ship 6] reports the problem of a result that ${name}`, async () => {
        const examined = await examineCall(fault, '--call', 'first');
        assert.equal(examined.call?.status, status, JSON.stringify(examined.checks));
        assert.match(examined.call?.detail ?? '', detail);
      });
    }

    it('[ship 6] suggests the nearest tool name, and rejects arguments without a call', async () => {
      assert.match((await examineCall(undefined, '--call', 'frist')).call?.detail ?? '', /no such tool.*`first`/);
      const { code, stderr } = await runToolhostCommand(['doctor', 'http://127.0.0.1:9/mcp', '--args', '{}']);
      assert.equal(code, 1);
      assert.match(stderr, /--call/);
    });
  });

  describe('with a login', () => {
    const examineWithFault = async (fault?: Fault) => {
      const server = await startForeignMcpServer(fault);
      const examined = await runDoctorWithLogin(server.address);
      await server.close();
      const of = (id: string) => examined.checks.find((check) => check.id === id);
      return { ...examined, of };
    };

    it('[ship 6] logs in, refreshes the token, checks the server with it, and ends the login', async () => {
      const revoked: string[] = [];
      const { code, of, stderr } = await examineWithFault(
        replaceResponse('revoke', (defaultResponse, { body }) => {
          revoked.push(new URLSearchParams(body).get('token') ?? '');
          return defaultResponse;
        }),
      );
      assert.equal(code, 0, stderr);
      for (const id of ['login', 'refresh', 'token', 'tool_list', 'logout']) assert.equal(of(id)?.status, 'ok', id);
      assert.deepEqual(revoked, ['the-refresh-token']);
      assert.doesNotMatch(stderr, /the-right-token|the-refresh-token/);
    });

    const changeGrant = (
      change: (defaultResponse: ForeignResponse, form: URLSearchParams) => ForeignResponse | undefined,
    ): Fault =>
      replaceResponse('token', (defaultResponse, { body }) =>
        defaultResponse.status === 200 ? change(defaultResponse, new URLSearchParams(body)) : undefined,
      );
    const faultCases: [name: string, fault: Fault, id: string, status: Check['status'], detail: RegExp][] = [
      [
        'issues no token',
        changeGrant((_, form) => (form.has('code') ? jsonResponse(400, { error: 'invalid_client' }) : undefined)),
        'login',
        'problem',
        /400 invalid_client/,
      ],
      [
        'issues no refresh token',
        changeGrant(() => jsonResponse(200, { access_token: 'the-right-token', token_type: 'Bearer' })),
        'refresh',
        'warning',
        /log in again/,
      ],
      [
        'refreshes only with a resource parameter',
        changeGrant((_, form) =>
          form.get('grant_type') === 'refresh_token' && !form.has('resource')
            ? jsonResponse(400, { error: 'invalid_target' })
            : undefined,
        ),
        'refresh',
        'problem',
        /400 invalid_target/,
      ],
      [
        'issues a token that it rejects',
        changeGrant((defaultResponse) => ({
          ...defaultResponse,
          body: { ...(defaultResponse.body as object), access_token: 'another' },
        })),
        'token',
        'problem',
        /401/,
      ],
      ['fails to revoke tokens', replaceResponse('revoke', () => jsonResponse(500, {})), 'logout', 'warning', /500/],
    ];
    for (const [name, fault, id, status, detail] of faultCases) {
      it(`[ship 6] reports the problem of a server that ${name}`, async () => {
        const { of, code, checks } = await examineWithFault(fault);
        assert.equal(of(id)?.status, status, JSON.stringify(checks, undefined, 1));
        assert.match(of(id)?.detail ?? '', detail);
        assert.equal(code, checks.some((check) => check.status === 'problem') ? 1 : 0);
      });
    }
  });
});
