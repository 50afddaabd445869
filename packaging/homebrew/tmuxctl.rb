class Tmuxctl < Formula
  desc "Drive any interactive terminal program from scripts; tmux keeps it alive"
  homepage "@URL@"
  url "@URL@/tmuxctl.pyz"
  version "@VERSION@"
  sha256 "@SHA256:one-file@"
  license "MIT"

  depends_on "python@3.13"
  depends_on "tmux"

  def install
    libexec.install "tmuxctl.pyz"
    (bin/"tmuxctl").write <<~SH
      #!/bin/sh
      exec "#{Formula["python@3.13"].opt_bin}/python3.13" "#{libexec}/tmuxctl.pyz" "$@"
    SH
    chmod 0755, bin/"tmuxctl"
    generate_completions_from_executable(bin/"tmuxctl", "completion")
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/tmuxctl --version")
  end
end
