/** A network around that of an address, and how many times the turns of one it has. */
export type WiderNetwork = { name: string; times: number };

/**
 * Networks around a /64 of IPv6 as `clientNetwork` writes it; none around an address of IPv4. Anybody may rent a /56 or a
 * /48, which has 65,536 networks of that size. But a telephone company gives each of its customers one of them, so the
 * wider networks have more turns than a single one.
 */
export function widerNetworks(network: string): readonly WiderNetwork[] {
  const [a, b, c, d, ...more] = network.split(':');
  if (d === undefined || more.length > 0) return none;
  return [
    { name: `${a}:${b}:${c}/48`, times: 16 },
    { name: `${a}:${b}:${c}:${Number(d) >> 8}/56`, times: 4 },
  ];
}

const none: readonly WiderNetwork[] = [];

/** The widest network that one person may have: a memory that is for everybody counts it as one owner. */
export function widestNetwork(network: string): string {
  // Taking an address apart takes a tenth of a microsecond, and each call of a stranger comes here.
  if (!network.includes(':')) return network;
  return widerNetworks(network)[0]?.name ?? network;
}
