import type { Webhook } from '../answers.ts';
import { api } from '../api.ts';
import { useAction } from '../ui/actions/use-action.ts';
import { visible } from '../ui/text/visible.ts';

/** Sends a webhook a test, and says how it was answered. */
export function useTest() {
  return useAction({
    run: async ({ id }: Pick<Webhook, 'id' | 'origin'>) => {
      const { delivered, error } = await api('testWebhook', { id });
      if (!delivered) throw new Error(`the test was not delivered: ${error}`);
    },
    done: (_, { origin }) => `Delivered to ${visible(origin)}`,
    toastFailure: true,
  });
}
