import { defineConfig, type Plugin } from "vite";
import { viteSingleFile } from "vite-plugin-singlefile";

async function sourceHash(text: string): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return `'sha256-${btoa(String.fromCharCode(...new Uint8Array(digest)))}'`;
}

/**
 * Puts a content security policy into the page that allows its own script and style, by their hashes, and nothing else:
 * a report is opened from an attachment and holds strings of a stranger's program.
 */
function contentSecurityPolicy(): Plugin {
  return {
    name: "content-security-policy",
    enforce: "post",
    apply: "build",
    generateBundle: {
      order: "post",
      async handler(_options, bundle) {
        for (const file of Object.values(bundle)) {
          if (file.type !== "asset" || !file.fileName.endsWith(".html")) continue;
          const page = String(file.source);
          const hashes = async (pattern: RegExp) =>
            (await Promise.all([...page.matchAll(pattern)].map((match) => sourceHash(match[1] ?? "")))).join(" ");
          const scripts = await hashes(/<script type="module"[^>]*>([\s\S]*?)<\/script>/g);
          const styles = await hashes(/<style[^>]*>([\s\S]*?)<\/style>/g);
          if (!scripts || !styles || !page.includes("CONTENT_SECURITY_POLICY")) {
            this.error("the page lost its inlined script, its style or the place of its content security policy");
          }
          file.source = page.replace(
            "CONTENT_SECURITY_POLICY",
            () =>
              `default-src 'none'; script-src ${scripts}; style-src ${styles}; img-src data:; ` +
              "base-uri 'none'; form-action 'none'",
          );
        }
      },
    },
  };
}

export default defineConfig({
  plugins: [viteSingleFile({ removeViteModuleLoader: true }), contentSecurityPolicy()],
  build: { target: "es2022", reportCompressedSize: false, modulePreload: false },
});
