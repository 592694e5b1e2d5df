import type { Json } from './toolhost/toolhost.ts';

const buildArray = <T>(count: number, buildItem: (i: number) => T): T[] =>
  Array.from({ length: count }, (_, i) => buildItem(i));

/** Builds a server with the maximum number of tools, each with the texts and twenty arguments of a Stripe operation. */
export function buildLargeServer(slug: string, count = 1000): Json {
  return { name: 'Large', slug, tools: buildArray(count, buildLargeTool) };
}

export function buildLargeTool(index: number): Json {
  return {
    name: `post_customers_customer_sources_${index}`,
    description:
      "When you create a new credit card, you must specify a customer or recipient on which to create it. If the card's owner has no default card, then the new card becomes the default.",
    method: 'POST',
    url: `https://api.example.com/v1/customers/:customer/sources_${index}`,
    headers: { 'Stripe-Version': '2024-06-20' },
    input_schema: { customer: { type: 'string', description: 'Id of the customer' }, ...stripeArguments },
    body: 'form',
    timeout_ms: 10_000,
  };
}

const stripeArguments: Json = Object.fromEntries(
  buildArray(19, (j) => [
    `billing_details_${j}`,
    {
      type: j % 3 === 0 ? 'integer' : 'string',
      description: 'A positive integer in the smallest currency unit that says how much to charge. The least is 0.50.',
      optional: true,
      ...(j % 4 === 0 && j % 3 !== 0 && { enum: ['active', 'inactive', 'pending'] }),
    },
  ]),
);
