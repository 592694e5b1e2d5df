import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

// biome-ignore lint/style/noDefaultExport: Vite asks for a default export
export default defineConfig({
  root: import.meta.dirname,
  plugins: [react()],
  build: {
    outDir: '../dist/web',
    emptyOutDir: true,
    // Which file needs which, for the test of how much the first page loads.
    manifest: true,
    assetsInlineLimit: 0,
    target: 'es2023',
    reportCompressedSize: false,
  },
});
