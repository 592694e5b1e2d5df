import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { bodyLengthCases } from '../../../test/support/responses/corpus/body-lengths.ts';
import { chunkedBodyCases } from '../../../test/support/responses/corpus/chunked-bodies.ts';
import { connectionCases } from '../../../test/support/responses/corpus/connections.ts';
import type { CorpusCase } from '../../../test/support/responses/corpus/corpus-case.ts';
import { headerLineCases } from '../../../test/support/responses/corpus/header-lines.ts';
import { statusLineCases } from '../../../test/support/responses/corpus/status-lines.ts';
import {
  formatOutcome,
  getUndiciOutcome,
  withoutFailureReason,
  withoutReasonPhrase,
} from '../../../test/support/responses/response-outcome.ts';
import { startScriptedUpstream } from '../../../test/support/responses/scripted-upstream.ts';
import { type ComparedResponse, undiciDifferences } from '../../../test/support/responses/undici-differences.ts';
import { createExchange, createTestClient, getFailure } from '../../../test/support/upstreams/http-client.ts';
import { useFixtures } from '../../../test/support/use-fixtures.ts';

const corpus: readonly [group: string, cases: readonly CorpusCase[]][] = [
  ['all kinds of status lines', statusLineCases],
  ['all kinds of header lines', headerLineCases],
  ['all kinds of body lengths', bodyLengthCases],
  ['all kinds of chunked bodies', chunkedBodyCases],
  ['interim responses, upgrades, and closed connections', connectionCases],
];

/** A way to send the bytes of a response. */
type Delivery = { how: string; inPieces: boolean };
const inOnePiece: Delivery = { how: 'in one piece', inPieces: false };
const deliveries: readonly Delivery[] = [inOnePiece, { how: 'byte by byte', inPieces: true }];
/** Responses above this length are sent in longer pieces, so that each takes at most a few seconds. */
const maxSingleBytes = 8000;
const longPieceBytes = 997;

function splitBytes(bytes: Buffer, { inPieces }: Delivery): Buffer[] {
  const pieceBytes = bytes.length > maxSingleBytes ? longPieceBytes : 1;
  if (!inPieces) return bytes.length > 0 ? [bytes] : [];
  return Array.from({ length: Math.ceil(bytes.length / pieceBytes) }, (_, index) =>
    bytes.subarray(index * pieceBytes, (index + 1) * pieceBytes),
  );
}

function getExpected({ expected, expectedInPieces = expected }: CorpusCase, { inPieces }: Delivery): string {
  return inPieces ? expectedInPieces : expected;
}

describe('the HTTP client, for a corpus of raw responses', () => {
  const fixtures = useFixtures();
  const upstream = fixtures.start(startScriptedUpstream);
  const http = fixtures.start(async () => createTestClient(`127.0.0.1:${upstream.port}`));

  const prepare = ({ bytes, method = 'GET', ending, requestBytes = 2 }: CorpusCase, delivery: Delivery) => {
    const { path } = upstream.prepare({ pieces: splitBytes(Buffer.from(bytes, 'latin1'), delivery), ending });
    return { path, method, body: method === 'POST' ? Buffer.alloc(requestBytes) : undefined };
  };

  /** Sends the request of a case over a new connection. */
  const send = (one: CorpusCase, delivery: Delivery, host = 'upstream.example') =>
    http.send(
      createExchange(`http://${host}:${upstream.port}`, { ...prepare(one, delivery), credentialHash: undefined }),
    );

  /** Repeats an exchange during which a busy machine paused this process. */
  const getOutcome = async (one: CorpusCase, delivery: Delivery): Promise<string> => {
    for (;;) {
      const outcome = await formatOutcome(send(one, delivery));
      if (outcome !== 'stopped') return outcome;
    }
  };

  /** Returns the cases for which the expected outcome is not that of undici. */
  const compareWithUndici = async (cases: readonly CorpusCase[], delivery: Delivery): Promise<ComparedResponse[]> => {
    const compared = await Promise.all(
      cases.map(async (one) => {
        const outcome = await getUndiciOutcome(upstream.url, prepare(one, delivery));
        const [ours, undici] = [getExpected(one, delivery), outcome].map((text) =>
          delivery.inPieces ? withoutReasonPhrase(text) : text,
        ) as [string, string];
        return { bytes: one.bytes, ours, undici };
      }),
    );
    return compared.filter(({ ours, undici }) => withoutFailureReason(ours) !== undici);
  };

  /** Runs all cases simultaneously, and maps their names to the results. */
  const runAll = async <Result>(cases: readonly CorpusCase[], run: (corpusCase: CorpusCase) => Promise<Result>) =>
    Object.fromEntries(await Promise.all(cases.map(async (one) => [one.name, await run(one)] as const)));

  for (const [group, cases] of corpus) {
    for (const delivery of deliveries) {
      it(`reads or rejects responses with ${group} that arrive ${delivery.how}`, async () => {
        const expected = await runAll(cases, async (one) => getExpected(one, delivery));
        const outcomes = await runAll(cases, (one) => getOutcome(one, delivery));
        assert.deepEqual(outcomes, expected);
      });

      it(`differs from undici only for listed reasons, for responses with ${group} that arrive ${delivery.how}`, async () => {
        const compared = await compareWithUndici(cases, delivery);
        assert.deepEqual(
          compared.filter((one) => !undiciDifferences.some(({ appliesTo }) => appliesTo(one))),
          [],
        );
      });
    }
  }

  it('differs from undici for each listed reason', async () => {
    const cases = corpus.flatMap(([, group]) => group);
    const compared = await compareWithUndici(cases, inOnePiece);
    const unused = undiciDifferences.filter(({ appliesTo }) => !compared.some(appliesTo));
    assert.deepEqual(unused, []);
  });

  it('rejects malformed and truncated responses with a sentence that has no address', async () => {
    const rejected = corpus.flatMap(([, cases]) => cases.filter(({ expected }) => /^[a-z]+$/.test(expected)));
    assert.ok(rejected.length > 80, String(rejected.length));
    const messages = await runAll(
      rejected,
      async (one) => (await getFailure(send(one, inOnePiece, '127.0.0.1'))).message,
    );
    assert.deepEqual(
      Object.entries(messages).filter(([, message]) => /127\.0\.0\.1/.test(message)),
      [],
    );
  });

  it('names the host of a response that is not HTTP/1, and what was found', async () => {
    const malformed = corpus.flatMap(([, cases]) => cases.filter(({ expected }) => expected === 'malformed'));
    const messages = await runAll(malformed, async (one) => (await getFailure(send(one, inOnePiece))).message);
    const named = /^the response of upstream\.example:\d+ is not plain HTTP\/1; found [a-zA-Z0-9 ,/-]+$/;
    const limited = /^the upstream responded with (too many|a body that cannot be decompressed)/;
    assert.deepEqual(
      Object.entries(messages).filter(([, message]) => !named.test(message) && !limited.test(message)),
      [],
    );
  });
});
