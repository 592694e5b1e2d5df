import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { getRunCount } from '../../../test/sets.ts';
import { getLiteralAddress, isPublicAddress } from './address.ts';

type Range = [network: number[], bits: number];

/** Parses ranges of IPv4 addresses, such as 10.0.0.0/8. */
const parseV4 = (ranges: string) =>
  ranges.split(' ').map((range): Range => {
    const [network = '', bits] = range.split('/');
    return [network.split('.').map(Number), Number(bits)];
  });

/** IANA's special-purpose registry and additional rejected ranges. Deliberately separate from the product's code. */
const refusedV4 = [
  ...parseV4('0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.168.0.0/16 240.0.0.0/4'),
  // Assignments of the IETF, benchmarks, documentation, and multicast.
  ...parseV4('192.0.0.0/24 198.18.0.0/15 192.0.2.0/24 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4'),
  // AS112, multicast tunnels, relays to 6to4, and Azure's wire server.
  ...parseV4('192.31.196.0/24 192.175.48.0/24 192.52.193.0/24 192.88.99.0/24 168.63.129.16/32'),
];

/** The only assigned range, 2000::/3. Addresses outside it are rejected. */
const assignedV6: Range = [[0x20], 3];
/** Rejected ranges inside the assigned range. */
const refusedV6: Range[] = [
  [[0x20, 0x01, 0x00], 23], // Teredo, benchmarks, ORCHID and other assignments of the IETF
  [[0x20, 0x01, 0x0d, 0xb8], 32],
  [[0x20, 0x02], 16], // 6to4
  [[0x26, 0x20, 0x00, 0x4f, 0x80, 0x00], 48], // AS112
  [[0x3f, 0xff, 0x00], 20], // documentation
];

function isInside(bytes: readonly number[], [network, bits]: Range): boolean {
  for (let bit = 0; bit < bits; bit += 1) {
    const at = (source: readonly number[]) => ((source[bit >> 3] ?? 0) >> (7 - (bit & 7))) & 1;
    if (at(bytes) !== at(network)) return false;
  }
  return true;
}

/** Returns true for an IPv4-mapped address, ::ffff:0:0/96. */
const isMapped = (bytes: readonly number[]) =>
  bytes.slice(0, 10).every((b) => b === 0) && bytes[10] === 255 && bytes[11] === 255;

function isPublicByTable(bytes: readonly number[]): boolean {
  if (bytes.length === 4) return !refusedV4.some((range) => isInside(bytes, range));
  if (isMapped(bytes)) return isPublicByTable(bytes.slice(12));
  return isInside(bytes, assignedV6) && !refusedV6.some((range) => isInside(bytes, range));
}

const byte = fc.integer({ min: 0, max: 255 });

/** Addresses of a range, and those just outside it. */
function rangeAndNeighbors(range: Range, length: number): fc.Arbitrary<number[]> {
  return fc
    .record({
      rest: fc.array(byte, { minLength: length, maxLength: length }),
      step: fc.constantFrom(-1n, 0n, 1n),
      fill: fc.constantFrom('low', 'high', 'any'),
    })
    .map(({ rest, step, fill }) => {
      let value = 0n;
      for (let bit = 0; bit < length * 8; bit += 1) {
        const source = bit < range[1] ? range[0] : rest;
        const sourceBit = ((source[bit >> 3] ?? 0) >> (7 - (bit & 7))) & 1;
        value = (value << 1n) | BigInt(bit < range[1] || fill === 'any' ? sourceBit : fill === 'high' ? 1 : 0);
      }
      const moved = BigInt.asUintN(length * 8, value + step);
      return Array.from({ length }, (_, index) => Number((moved >> BigInt(8 * (length - 1 - index))) & 255n));
    });
}

const anyV4 = fc.oneof(
  fc.array(byte, { minLength: 4, maxLength: 4 }),
  ...refusedV4.map((range) => rangeAndNeighbors(range, 4)),
);
const mapped = anyV4.map((bytes) => [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, ...bytes]);
const otherPrefixes = ['0064ff9b', '0064ff9b0001', 'fc', 'fe80', 'fec0', 'ff02', ''].map((hex) => [
  ...Buffer.from(hex, 'hex'),
]);
const anyV6 = fc.oneof(
  fc.array(byte, { minLength: 16, maxLength: 16 }),
  fc.array(byte, { minLength: 15, maxLength: 15 }).map((rest) => [0x20 | ((rest[0] ?? 0) & 0x1f), ...rest]),
  mapped,
  ...refusedV6.map((range) => rangeAndNeighbors(range, 16)),
  ...otherPrefixes.map((network) => rangeAndNeighbors([network, network.length * 8], 16)),
);

const formatV4 = (bytes: readonly number[]) => bytes.join('.');

/** Returns the spellings of one address that RFC 4291 (2.2) allows. */
function formatV6(bytes: readonly number[]): string[] {
  const groups = Array.from({ length: 8 }, (_, i) =>
    (((bytes[2 * i] ?? 0) << 8) | (bytes[2 * i + 1] ?? 0)).toString(16),
  );
  const full = groups.join(':');
  const zeros = /(?:^|:)0(?::0)+(?:$|:)/.exec(full);
  const compressed = zeros ? `${full.slice(0, zeros.index)}::${full.slice(zeros.index + zeros[0].length)}` : full;
  const padded = groups.map((group) => group.padStart(4, '0')).join(':');
  return [full, compressed, padded, full.toUpperCase(), `${groups.slice(0, 6).join(':')}:${formatV4(bytes.slice(12))}`];
}

describe('the address guard compared with the IANA table', () => {
  it('[sec B1] classifies any IPv4 address like the table', () => {
    fc.assert(
      fc.property(anyV4, (bytes) =>
        assert.equal(isPublicAddress(formatV4(bytes)), isPublicByTable(bytes), formatV4(bytes)),
      ),
      { numRuns: getRunCount(4000) },
    );
  });

  it('[sec B1] classifies any IPv6 address like the table, in every spelling', () => {
    fc.assert(
      fc.property(anyV6, (bytes) => {
        for (const text of formatV6(bytes)) assert.equal(isPublicAddress(text), isPublicByTable(bytes), text);
      }),
      { numRuns: getRunCount(4000) },
    );
  });

  it('[sec B1] recognizes the address in every host that a URL can contain', () => {
    fc.assert(
      fc.property(fc.oneof(anyV4, anyV6), (bytes) => {
        const hosts =
          bytes.length === 4
            ? [formatV4(bytes), `${formatV4(bytes)}.`, String(bytes.reduce((sum, b) => sum * 256 + b, 0))]
            : formatV6(bytes).map((text) => `[${text}]`);
        for (const host of hosts) {
          const literal = getLiteralAddress(new URL(`https://${host}/`).hostname);
          assert.ok(literal !== undefined, host);
          assert.equal(isPublicAddress(literal), isPublicByTable(bytes), host);
        }
      }),
      { numRuns: getRunCount(2000) },
    );
  });

  it('[sec B1] does not treat a name as an address', () => {
    const assertIsName = (text: string) => {
      assert.equal(getLiteralAddress(text), undefined, text);
      assert.equal(isPublicAddress(text), false, text);
    };
    fc.assert(fc.property(fc.domain(), assertIsName));
    for (const name of ['localhost', '1.2.3.4.example', '8.8.8.8x', 'x8.8.8.8', 'dead.beef']) assertIsName(name);
  });
});
