import { type CorpusCase, ok, sized } from './corpus-case.ts';

const withLine = (line: string) => `${ok}${line}\r\n${sized}`;
const characters = (first: number, last: number) =>
  Array.from({ length: last - first + 1 }, (_, index) => String.fromCharCode(first + index)).join('');

/** Responses whose header lines differ. */
export const headerLineCases: readonly CorpusCase[] = [
  {
    name: 'names in mixed case',
    bytes: withLine('X-A: 1\r\nx-B: 2'),
    expected: '200 "OK" {"x-a":"1","x-b":"2","content-length":"2"} "ok"',
  },
  {
    name: 'all characters that a name may have',
    bytes: withLine("!#$%&'*+-.^_`|~09azAZ: 1"),
    expected: '200 "OK" {"!#$%&\'*+-.^_`|~09azaz":"1","content-length":"2"} "ok"',
  },
  {
    name: 'no space before the value',
    bytes: withLine('x-a:1'),
    expected: '200 "OK" {"x-a":"1","content-length":"2"} "ok"',
  },
  {
    name: 'spaces and tabs around the value',
    bytes: withLine('x-a: \t 1 \t '),
    expected: '200 "OK" {"x-a":"1","content-length":"2"} "ok"',
  },
  {
    name: 'spaces within the value',
    bytes: withLine('x-a: 1  2\t3'),
    expected: '200 "OK" {"x-a":"1  2\\t3","content-length":"2"} "ok"',
  },
  { name: 'an empty value', bytes: withLine('x-a:'), expected: '200 "OK" {"x-a":"","content-length":"2"} "ok"' },
  { name: 'a value of spaces', bytes: withLine('x-a:   '), expected: '200 "OK" {"x-a":"","content-length":"2"} "ok"' },
  {
    name: 'a value with colons',
    bytes: withLine('x-a: :b: c:'),
    expected: '200 "OK" {"x-a":":b: c:","content-length":"2"} "ok"',
  },
  {
    name: 'a value with quotes and a comma',
    bytes: withLine('x-a: "1\\", 2"'),
    expected: '200 "OK" {"x-a":"\\"1\\\\\\", 2\\"","content-length":"2"} "ok"',
  },
  {
    name: 'bytes 0x80 to 0xff in a value',
    bytes: withLine(`x-a: ${characters(0x80, 0xff)}`),
    expected:
      '200 "OK" {"x-a":"\x80\x81\x82\x83\x84\x85\x86\x87\x88\x89\x8a\x8b\x8c\x8d\x8e\x8f\x90\x91\x92\x93\x94\x95\x96\x97\x98\x99\x9a\x9b\x9c\x9d\x9e\x9f\xa0¡¢£¤¥¦§¨©ª«¬­®¯°±²³´µ¶·¸¹º»¼½¾¿ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÐÑÒÓÔÕÖ×ØÙÚÛÜÝÞßàáâãäåæçèéêëìíîïðñòóôõö÷øùúûüýþÿ","content-length":"2"} "ok"',
  },
  {
    name: 'UTF-8 in a value',
    bytes: withLine('x-a: caf\xc3\xa9'),
    expected: '200 "OK" {"x-a":"cafÃ©","content-length":"2"} "ok"',
  },
  { name: 'a byte above 0x7f in a name', bytes: withLine('x-\xe9: 1'), expected: 'malformed' },
  { name: 'NUL in a value', bytes: withLine('x-a: 1\x002'), expected: 'malformed' },
  { name: 'NUL in a name', bytes: withLine('x-\0a: 1'), expected: 'malformed' },
  { name: 'a control character in a value', bytes: withLine('x-a: 1\x012'), expected: 'malformed' },
  { name: 'DEL in a value', bytes: withLine('x-a: 1\x7f2'), expected: 'malformed' },
  { name: 'vertical tab and form feed in a value', bytes: withLine('x-a: 1\x0b\x0c2'), expected: 'malformed' },
  { name: 'a control character in a name', bytes: withLine('x-\x01a: 1'), expected: 'malformed' },
  { name: 'a tab in a name', bytes: withLine('x-\ta: 1'), expected: 'malformed' },
  { name: 'a space in a name', bytes: withLine('x a: 1'), expected: 'malformed' },
  { name: 'a space before the colon', bytes: withLine('x-a : 1'), expected: 'malformed' },
  { name: 'a tab before the colon', bytes: withLine('x-a\t: 1'), expected: 'malformed' },
  {
    name: 'a space before the colon of content-length',
    bytes: `${ok}content-length : 2\r\n\r\nok`,
    expected: 'malformed',
  },
  { name: 'parentheses in a name', bytes: withLine('x(a): 1'), expected: 'malformed' },
  { name: 'an empty name', bytes: withLine(': 1'), expected: 'malformed' },
  { name: 'a line without a colon', bytes: withLine('x-a'), expected: 'malformed' },
  { name: 'a lone CR in a value', bytes: withLine('x-a: 1\r2'), expected: 'malformed' },
  { name: 'a lone CR that hides a header line', bytes: withLine('x-a: 1\rcontent-length: 1'), expected: 'malformed' },
  { name: 'a lone CR in a name', bytes: withLine('x-\ra: 1'), expected: 'malformed' },
  { name: 'bare LF after a header line', bytes: `${ok}x-a: 1\n${sized}`, expected: 'malformed' },
  { name: 'bare LF after the last header line', bytes: `${ok}content-length: 2\n\r\nok`, expected: 'malformed' },
  { name: 'bare LF as the empty line', bytes: `${ok}content-length: 2\r\n\nok`, expected: 'malformed' },
  { name: 'CR CR LF after a header line', bytes: `${ok}x-a: 1\r\r\n${sized}`, expected: 'malformed' },
  {
    name: 'bare CR as the empty line',
    bytes: `${ok}content-length: 2\r\n\rok`,
    expected: 'truncated',
    ending: 'close',
  },
  { name: 'a line folded with a space', bytes: withLine('x-a: 1\r\n 2'), expected: 'malformed' },
  { name: 'a line folded with a tab', bytes: withLine('x-a: 1\r\n\t2'), expected: 'malformed' },
  { name: 'a line folded twice', bytes: withLine('x-a: 1\r\n 2\r\n  3'), expected: 'malformed' },
  { name: 'a folded line before any header', bytes: `${ok} x-a: 1\r\n${sized}`, expected: 'malformed' },
  { name: 'a folded content-length', bytes: `${ok}content-length: \r\n 2\r\n\r\nok`, expected: 'malformed' },
  {
    name: 'a folded transfer-encoding',
    bytes: `${ok}transfer-encoding:\r\n chunked\r\n\r\n0\r\n\r\n`,
    expected: 'malformed',
  },
  { name: 'a line of spaces', bytes: withLine('   '), expected: 'malformed' },
  {
    name: 'set-cookie twice',
    bytes: withLine('set-cookie: a=1\r\nSet-Cookie: b=2'),
    expected: '200 "OK" {"set-cookie":["a=1","b=2"],"content-length":"2"} "ok"',
  },
  {
    name: 'set-cookie once',
    bytes: withLine('set-cookie: a=1'),
    expected: '200 "OK" {"set-cookie":"a=1","content-length":"2"} "ok"',
  },
  {
    name: 'a repeated header',
    bytes: withLine('x-a: 1\r\nx-b: 2\r\nX-A: 3\r\nx-a: 4'),
    expected: '200 "OK" {"x-a":["1","3","4"],"x-b":"2","content-length":"2"} "ok"',
  },
  {
    name: 'a repeated content-type',
    bytes: withLine('content-type: a/b\r\ncontent-type: c/d'),
    expected: '200 "OK" {"content-type":["a/b","c/d"],"content-length":"2"} "ok"',
  },
  {
    name: 'a repeated header with an empty value',
    bytes: withLine('x-a:\r\nx-a: 1\r\nx-a:'),
    expected: '200 "OK" {"x-a":["","1",""],"content-length":"2"} "ok"',
  },
  {
    name: 'the name __proto__',
    bytes: withLine('__proto__: 1'),
    expected: '200 "OK" {"__proto__":"1","content-length":"2"} "ok"',
  },
  {
    name: 'the name __proto__ twice',
    bytes: withLine('__proto__: 1\r\n__PROTO__: 2'),
    expected: '200 "OK" {"__proto__":["1","2"],"content-length":"2"} "ok"',
  },
  {
    name: 'the name constructor',
    bytes: withLine('constructor: 1'),
    expected: '200 "OK" {"constructor":"1","content-length":"2"} "ok"',
  },
  {
    name: 'the name constructor twice',
    bytes: withLine('constructor: 1\r\nconstructor: 2'),
    expected: '200 "OK" {"constructor":["1","2"],"content-length":"2"} "ok"',
  },
  {
    name: 'toString and hasOwnProperty',
    bytes: withLine('toString: 1\r\nhasOwnProperty: 2'),
    expected: '200 "OK" {"tostring":"1","hasownproperty":"2","content-length":"2"} "ok"',
  },
  {
    name: 'names that are numbers',
    bytes: withLine('2: b\r\n1: a'),
    expected: '200 "OK" {"1":"a","2":"b","content-length":"2"} "ok"',
  },
  {
    name: 'a name of 1,000 bytes',
    bytes: withLine(`x-${'a'.repeat(998)}: 1`),
    expected: '200 "OK" {"x-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa… (1029 characters, 181cfa97) "ok"',
  },
  {
    name: '500 header lines',
    bytes: withLine(Array.from({ length: 500 }, (_, n) => `x-${n}: 1`).join('\r\n')),
    expected: '200 "OK" {"x-0":"1","x-1":"1","x-2":"1","x-3":"1"… (5912 characters, b2532e51) "ok"',
  },
  {
    name: '3,000 repetitions of a header',
    bytes: withLine('x-a: 1\r\n'.repeat(3000).trimEnd()),
    expected: '200 "OK" {"x-a":["1","1","1","1","1","1","1","1",… (12030 characters, e258b3aa) "ok"',
  },
  {
    name: 'a head of 60 KB',
    bytes: withLine(`x-a: ${'a'.repeat(60 * 1024)}`),
    expected: '200 "OK" {"x-a":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa… (61471 characters, ee0f355f) "ok"',
  },
  { name: 'a head of 80 KB', bytes: withLine(`x-a: ${'a'.repeat(80 * 1024)}`), expected: 'malformed' },
  { name: 'a head of 512 KB', bytes: withLine(`x-a: ${'a'.repeat(512 * 1024)}`), expected: 'malformed' },
  { name: 'a head of 20,000 lines', bytes: withLine('x-a: 1\r\n'.repeat(20_000).trimEnd()), expected: 'malformed' },
  { name: 'no header', bytes: `${ok}\r\nok`, expected: '200 "OK" {} "ok"', ending: 'close' },
  {
    name: 'expect',
    bytes: withLine('expect: 100-continue'),
    expected: '200 "OK" {"expect":"100-continue","content-length":"2"} "ok"',
  },
  {
    name: 'a content coding that is not one',
    bytes: withLine('content-encoding: utf-8'),
    expected: '200 "OK" {"content-encoding":"utf-8","content-length":"2"} "ok"',
  },
  { name: 'a content coding that the body lacks', bytes: withLine('content-encoding: gzip'), expected: 'malformed' },
];
