import { useDebouncedValue } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { isSlug } from '@toolhost/tool-config/slug';
import { api } from '../api.ts';
import { asInput } from './config.ts';

/** Length that leaves room for a number. */
const maxBaseLength = 60;
const maxNumber = 20;

/**
 * Finds a slug that is free: the requested one, or the first with a number, such as `orders-2` for "Orders 2". Returns
 * the requested one if all of these are taken.
 */
async function findFreeSlug(requested: string, signal: AbortSignal) {
  const base = requested.slice(0, maxBaseLength).replace(/-$/, '');
  for (let number = 1; number <= maxNumber; number++) {
    const slug = number === 1 ? requested : `${base}-${number}`;
    const { slug_taken } = await api('checkMcpServer', asInput({ slug }), { signal });
    if (slug_taken !== undefined) continue;
    const note = number === 1 ? undefined : `“${requested}” is taken. “${slug}” is free.`;
    return { requested, slug, nameSuffix: number === 1 ? '' : ` ${number}`, note };
  }
  return { requested, slug: requested, nameSuffix: '', note: `“${requested}” is taken.` };
}

/** Finds a free slug after 300 ms without input. It is undefined until then, and for a text that is no slug. */
export function useFreeSlug(requested: string) {
  const [settled] = useDebouncedValue(requested, 300);
  const { data, isLoading } = useQuery({
    queryKey: ['free slug', settled],
    queryFn: ({ signal }) => findFreeSlug(settled, signal),
    enabled: isSlug(settled),
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
    refetchOnReconnect: false,
  });
  return { freeSlug: data?.requested === requested ? data : undefined, isLoading };
}
