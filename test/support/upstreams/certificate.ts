import { generateKeyPairSync, randomUUID, sign } from 'node:crypto';

/** A self-signed certificate and its key, in PEM. */
export type Certificate = { cert: string; key: string };

/** Encodes one DER element (X.690, 8.1 and 10.1): tag, length in as few bytes as possible, content. */
function der(tag: number, ...content: Buffer[]): Buffer {
  const body = Buffer.concat(content);
  const { length } = body;
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 255];
  return Buffer.concat([Buffer.from([tag, ...size]), body]);
}

const sequence = (...content: Buffer[]) => der(0x30, ...content);
const set = (content: Buffer) => der(0x31, content);
const oid = (hex: string) => der(0x06, Buffer.from(hex, 'hex'));
const bits = (content: Buffer) => der(0x03, Buffer.from([0]), content);
const utcTime = (text: string) => der(0x17, Buffer.from(text));

const ecdsaWithSha256 = sequence(oid('2a8648ce3d040302'));
const commonName = '550403';
const subjectAlternativeName = '551d11';

/** Creates a certificate for one host name, valid from 2020 to 2049 or to the given year (RFC 5280, 4.1). */
export function createSelfSigned(hostname: string, lastYear = 2049): Certificate {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  // OpenSSL finds a trusted certificate by its name, and takes one of another key for an impersonation.
  const name = sequence(set(sequence(oid(commonName), der(0x0c, Buffer.from(randomUUID())))));
  const dnsName = sequence(der(0x82, Buffer.from(hostname)));
  const body = sequence(
    der(0xa0, der(0x02, Buffer.from([2]))),
    der(0x02, Buffer.from([1])),
    ecdsaWithSha256,
    name,
    sequence(utcTime('200101000000Z'), utcTime(`${lastYear % 100}1231235959Z`)),
    name,
    publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, sequence(sequence(oid(subjectAlternativeName), der(0x04, dnsName)))),
  );
  const signed = sequence(body, ecdsaWithSha256, bits(sign('sha256', body, privateKey)));
  const lines = signed.toString('base64').match(/.{1,64}/g) ?? [];
  return {
    cert: ['-----BEGIN CERTIFICATE-----', ...lines, '-----END CERTIFICATE-----', ''].join('\n'),
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  };
}
