import { useDebouncedValue } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { isSlug } from '@toolhost/tool-config/slug';
import { api } from '../api.ts';
import { asInput } from './config.ts';

/** Free slug: the requested one, or the first that is free with a number, such as `orders-2`. */
export type FreeSlug = { requested: string; slug: string; number: number };

/** Length that leaves room for a number. */
const maxBaseLength = 60;
const maxNumber = 20;

async function findFreeSlug(requested: string, signal: AbortSignal): Promise<FreeSlug> {
  const base = requested.slice(0, maxBaseLength).replace(/-$/, '');
  for (let number = 1; ; number++) {
    const slug = number === 1 ? requested : `${base}-${number}`;
    const { slug_taken } = await api('checkMcpServer', asInput({ slug }), { signal });
    if (slug_taken === undefined || number === maxNumber) return { requested, slug, number };
  }
}

/** Finds a free slug after 300 ms without input. It is undefined until then, and for a text that is no slug. */
export function useFreeSlug(requested: string): { freeSlug: FreeSlug | undefined; isLoading: boolean } {
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

/** Explains why a server gets another slug than its name suggests. */
export function formatTaken({ requested, slug }: FreeSlug): string {
  return `“${requested}” is taken. “${slug}” is free.`;
}

/** Returns a name with the number of its slug, so that two servers do not have the same name. */
export function numberName(name: string, freeSlug: FreeSlug | undefined): string {
  return freeSlug === undefined || freeSlug.number === 1 ? name : `${name} ${freeSlug.number}`;
}
